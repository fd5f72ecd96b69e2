/**
 * Detects that the store's clock moved back: it was set, or a server with another clock took over. Scheduled jobs are
 * due by that clock, so all of them run later than intended. The newest reading is kept in the store as well: the clock
 * may move back while the leader changes.
 */
import type { Core } from '../core/core.ts'

/** Ignore small corrections. */
const TOLERANCE_MS = 2_000
/** Between two readings, the clocks of two machines drift apart by far less than this. */
const MOST_DRIFT = 0.001

/** Maximum age of the note. After a longer interruption, another process may have led. */
const NOTE_EVERY_MS = 10_000

/** When the call was sent and answered, by this process's monotonic clock. */
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

  /** `schedules`: number of active schedules. */
  async see(sight: Sight, schedules: number): Promise<void> {
    const backMs = await this.#wentBack(sight)
    if (backMs > 0) {
      const scheduled = await this.#countScheduled()
      this.#core.events.emit('store.clock', { backMs, scheduled, schedules })
    }
    // Emitted last: if the count failed, the next reading emits it.
    this.#last = sight
    if (backMs > 0 || sight.sentMs - this.#notedMs >= NOTE_EVERY_MS) await this.#note(sight)
  }

  async #wentBack(sight: Sight): Promise<number> {
    const last = this.#last
    if (last !== undefined && sight.sentMs - last.answeredMs < NOTE_EVERY_MS) return wentBack(last, sight)
    const noted = Number((await this.#core.store.upkeep.notedTime()) ?? NaN)
    // The leader since the last reading has emitted it, and stored the later time.
    if (Number.isNaN(noted)) return last === undefined ? 0 : wentBack(last, sight)
    const backMs = noted - sight.now
    return backMs > TOLERANCE_MS ? Math.round(backMs) : 0
  }

  /** If this fails, the next reading tries again: schedules need not wait for it. */
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

/** Minimum distance; 0 if a slow answer or drift explains it. */
function wentBack(before: Sight, { now, sentMs }: Sight): number {
  // Minimum time between the two readings, wherever in its call each was taken.
  const passedMs = Math.max(0, sentMs - before.answeredMs)
  const backMs = before.now + passedMs - now
  return backMs > TOLERANCE_MS + passedMs * MOST_DRIFT ? Math.round(backMs) : 0
}
