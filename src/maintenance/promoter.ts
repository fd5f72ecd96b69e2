/** Promotes jobs that have fallen due, and sleeps until the next one does. */
import type { Core } from '../core/core.ts'
import { AT_ONCE_MS, BATCH, type Duty } from './duty.ts'

/** A job that falls due sooner than the last look foresaw, and whose wake-up got lost, is late by this much at most. */
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
