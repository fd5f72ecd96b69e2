import { readdirSync } from 'node:fs'
import { Redis } from 'ioredis'
import { withoutTransactions } from '../../../src/stores/conformance/index.ts'
import { readScripts, type ScriptName } from '../../../src/stores/redis/scripts.ts'
import { openAuditedStore } from '../../support/servers/redis-store.ts'
import type { MutantSite } from '../hunt.ts'
import type { EditText } from '../mutant.ts'
import { CROSSINGS } from './crossings.ts'
import { handsNothingToNobody } from './gone-process.ts'
import { repeatsLostFlush } from './lost-answers.ts'
import { REFUSALS } from './refusals.ts'

export function redisSite(url: string): MutantSite {
  return {
    open: (edit, frozen) => openAuditedStore({ url, frozen, edit }),
    load: (edit) => load(url, edit),
    tests: (edit) => ({
      'a flush whose answer was lost is written once': () => repeatsLostFlush(url, edit),
      'a job is not handed to a process that is gone': () => handsNothingToNobody(url, edit),
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

const FOLDER = new URL('../../../src/stores/redis/lua/', import.meta.url)

/** Files of functions are loaded as scripts too: the server parses them just the same. */
async function load(url: string, edit: EditText): Promise<void> {
  const scripts = readScripts(undefined, edit)
  const redis = new Redis(url)
  try {
    for (const file of readdirSync(FOLDER))
      await redis.script('LOAD', scripts.get(file.replace(/\.lua$/, '') as ScriptName).text)
  } finally {
    redis.disconnect()
  }
}
