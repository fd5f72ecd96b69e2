/**
 * Notices that the store's clock went back: somebody set it, or another server with another clock took over. Scheduled
 * jobs are due by that clock, so they all run later than they were meant to.
 */
import type { Core } from '../client/core.ts'
import { DUTY_TIMEOUT_MS } from './duty.ts'

/** Small corrections are no news. */
const TOLERANCE_MS = 2_000
/** Between two looks, the clocks of two machines drift apart by far less than this. */
const MOST_DRIFT = 0.001

/** When the store was asked and had answered, by the monotonic clock of this process. */
export interface Sight {
  readonly now: number
  readonly sentMs: number
  readonly answeredMs: number
}

export class StoreClock {
  readonly #core: Core
  #last: Sight | undefined

  constructor(core: Core) {
    this.#core = core
  }

  /** `schedules`: how many of them are active. */
  async see(sight: Sight, schedules: number): Promise<void> {
    const backMs = this.#last === undefined ? 0 : wentBack(this.#last, sight)
    if (backMs > 0) {
      const scheduled = await this.#countScheduled()
      this.#core.events.emit('store.clock', { backMs, scheduled, schedules })
    }
    // Only now: if the count failed, the next look tells of it.
    this.#last = sight
  }

  async #countScheduled(): Promise<number> {
    const queues = await this.#core.connection.call(
      'count scheduled jobs',
      (store) => store.admin.queues(),
      DUTY_TIMEOUT_MS,
    )
    return queues.reduce((sum, { counts }) => sum + counts.scheduled, 0)
  }
}

/** At least this much; 0 for what a slow answer or drift explains. */
function wentBack(before: Sight, { now, sentMs }: Sight): number {
  // The least that has passed between the two readings, wherever in its call each was taken.
  const passedMs = Math.max(0, sentMs - before.answeredMs)
  const backMs = before.now + passedMs - now
  return backMs > TOLERANCE_MS + passedMs * MOST_DRIFT ? Math.round(backMs) : 0
}
