import { withoutTransactions } from '../../../src/stores/conformance/index.ts'
import { openAuditedStore } from '../../support/servers/redis-store.ts'
import type { MutantSite } from '../hunt.ts'
import { CROSSINGS } from './crossings.ts'
import { repeatsLostFlush } from './lost-answers.ts'
import { REFUSALS } from './refusals.ts'

export function redisSite(url: string): MutantSite {
  return {
    open: (edit, frozen) => openAuditedStore({ url, frozen, edit }),
    tests: (edit) => ({
      'a flush whose answer was lost is written once': () => repeatsLostFlush(url, edit),
      ...Object.fromEntries(
        Object.entries(REFUSALS).map(([title, refuse]) => [title, () => refuse(url, edit)]),
      ),
      ...Object.fromEntries(
        Object.entries(CROSSINGS).map(([title, crossing]) => [
          title,
          () => crossing((onScript) => openAuditedStore({ url, edit, onScript })),
        ]),
      ),
    }),
    skip: withoutTransactions,
  }
}
