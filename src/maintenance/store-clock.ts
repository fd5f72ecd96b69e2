/**
 * Notices that the store's clock went back: somebody set it, or another server with another clock took over. Scheduled
 * jobs are due by that clock, so they all run later than they were meant to. The newest sight is in the store as well:
 * the clock may go back while one leader takes over from another.
 */
import type { Core } from '../core/core.ts'

/** Small corrections are no news. */
const TOLERANCE_MS = 2_000
/** Between two looks, the clocks of two machines drift apart by far less than this. */
const MOST_DRIFT = 0.001

/** The note is as old as this at most. After a longer break, another process may have led. */
const NOTE_EVERY_MS = 10_000

/** When the store was asked and had answered, by the monotonic clock of this process. */
export interface Sight {
  readonly now: number
  readonly sentMs: number
  readonly answeredMs: number
}

export class StoreClock {
  readonly #core: Core
  #last: Sight | undefined
  #notedMs = -Infinity

  constructor(core: Core) {
    this.#core = core
  }

  /** `schedules`: how many of them are active. */
  async see(sight: Sight, schedules: number): Promise<void> {
    const backMs = await this.#wentBack(sight)
    if (backMs > 0) {
      const scheduled = await this.#countScheduled()
      this.#core.events.emit('store.clock', { backMs, scheduled, schedules })
    }
    // Only now: if the count failed, the next look tells of it.
    this.#last = sight
    if (backMs > 0 || sight.sentMs - this.#notedMs >= NOTE_EVERY_MS) await this.#note(sight)
  }

  async #wentBack(sight: Sight): Promise<number> {
    const last = this.#last
    if (last !== undefined && sight.sentMs - last.answeredMs < NOTE_EVERY_MS) return wentBack(last, sight)
    const noted = Number((await this.#core.store.upkeep.notedTime()) ?? NaN)
    // Whoever led since the last sight has told of it, and noted the time after that.
    if (Number.isNaN(noted)) return last === undefined ? 0 : wentBack(last, sight)
    const backMs = noted - sight.now
    return backMs > TOLERANCE_MS ? Math.round(backMs) : 0
  }

  /** If this fails, the next look tries again: schedules need not wait for it. */
  async #note({ now, sentMs }: Sight): Promise<void> {
    await this.#core.store.upkeep.noteTime(String(now)).then(
      () => void (this.#notedMs = sentMs),
      (error: unknown) => this.#core.connection.report("note the store's time", error),
    )
  }

  async #countScheduled(): Promise<number> {
    const queues = await this.#core.store.upkeep.queues()
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
