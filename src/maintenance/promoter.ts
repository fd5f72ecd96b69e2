/** Promotes due jobs, and sleeps until the next one is due. */
import type { Core } from '../core/core.ts'
import { AT_ONCE_MS, BATCH, type Duty } from './duty.ts'

/** Maximum delay of a job that is due sooner than the last check foresaw and whose wake-up was lost. */
const LONGEST_NAP_MS = 1_000

export function promoter(core: Core): Duty {
  return {
    name: 'promote',
    async run() {
      const { promoted, nextInMs } = await core.store.upkeep.promote(BATCH)
      if (promoted === BATCH) return { againInMs: AT_ONCE_MS }
      return { againInMs: Math.min(nextInMs ?? LONGEST_NAP_MS, LONGEST_NAP_MS) }
    },
  }
}
