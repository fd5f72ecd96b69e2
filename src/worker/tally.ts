/**
 * What one worker has got done since it started, as plain numbers. Not a listener of events: those are only built where
 * somebody listens, and a worker that drains hundreds of thousands of jobs a second would pay for an object each.
 */
import type { Exchanged } from './exchange.ts'

export class Tally {
  /** Attempts that were completed or failed, as far as the store has written that. */
  processed = 0
  /** Those of them that failed, whether or not they are tried again. */
  failed = 0
  /** How long their handlers ran. */
  busyMs = 0
  /** When the newest of them was written, by the monotonic clock; null before the first. */
  lastMs: number | null = null

  count(settled: Exchanged['settled'], nowMs: number): void {
    for (const { pending, answer } of settled) {
      const { settlement, runMs } = pending.request
      const { type } = settlement
      const isFailure = type === 'retry' || type === 'dead'
      // What was snoozed, given back or cancelled says nothing about how well the work goes.
      const isDone = type === 'completed' || (type === 'confirm' && answer === 'already')
      if (answer === 'lost' || !(isFailure || isDone)) continue
      this.processed++
      if (isFailure) this.failed++
      this.busyMs += runMs
      this.lastMs = nowMs
    }
  }
}
