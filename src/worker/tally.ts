/**
 * What one worker has got done since it started, as plain numbers. Not a listener of events: those are only built where
 * somebody listens, and a worker that drains hundreds of thousands of jobs a second would pay for an object each.
 */
import type { SettleAnswer } from '../stores/store.ts'
import type { PendingSettle } from './settling.ts'

export class Tally {
  /** Attempts that were completed or failed, as far as the store has written that. */
  processed = 0
  /** Those of them that failed, whether or not they are tried again. */
  failed = 0
  /** How long their handlers ran. */
  busyMs = 0
  /** When the newest of them was written, by the monotonic clock; null before the first. */
  lastMs: number | null = null

  count(settles: readonly PendingSettle[], answers: readonly SettleAnswer[], nowMs: number): void {
    settles.forEach(({ request: { settlement, runMs } }, index) => {
      const { type } = settlement
      const isFailure = type === 'retry' || type === 'dead'
      const answer = answers[index] ?? 'lost'
      // What was snoozed, given back or cancelled says nothing about how well the work goes.
      if (answer === 'lost' || !(isFailure || type === 'completed')) return
      this.processed++
      if (isFailure) this.failed++
      this.busyMs += runMs
      this.lastMs = nowMs
    })
  }
}
