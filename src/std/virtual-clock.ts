/**
 * A clock that stands still until it is advanced. Timers fire in order of their due time (ties: in the order they were
 * set), and all promise work that a timer starts runs before the next fires, so a test that advances an hour sees
 * exactly what would happen in an hour.
 */
import type { Clock } from './clock.ts'
import { SortedList } from './sorted-list.ts'

interface Timer {
  readonly dueMs: number
  readonly order: number
  readonly fn: () => void
}

export class VirtualClock implements Clock {
  readonly #startMs: number
  #nowMs: number
  #order = 0
  readonly #timers = new SortedList<Timer>((a, b) => a.dueMs - b.dueMs || a.order - b.order)

  constructor(start: number | Date = Date.UTC(2030, 0, 1)) {
    this.#startMs = Number(start)
    this.#nowMs = this.#startMs
  }

  now(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return this.#nowMs - this.#startMs
  }

  after(ms: number, fn: () => void): () => void {
    const timer: Timer = { dueMs: this.#nowMs + Math.max(0, ms), order: this.#order++, fn }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  /** When the next timer is due, or undefined if there is none. */
  nextDueMs(): number | undefined {
    return this.#timers.first()?.dueMs
  }

  /** Advances the time, firing due timers on the way. */
  async advance(ms: number): Promise<void> {
    const targetMs = this.#nowMs + ms
    await letPromisesRun()
    for (;;) {
      const timer = this.#timers.first()
      if (timer === undefined || timer.dueMs > targetMs) break
      await this.#fire(timer)
    }
    this.#nowMs = targetMs
  }

  /** Advances the time, timer by timer, until `done` holds; false if no timer is left. */
  async advanceUntil(done: () => boolean, limitMs = 24 * 3_600_000): Promise<boolean> {
    const limit = this.#nowMs + limitMs
    await letPromisesRun()
    while (!done()) {
      const timer = this.#timers.first()
      if (timer === undefined || timer.dueMs > limit) return false
      await this.#fire(timer)
    }
    return true
  }

  async #fire(timer: Timer): Promise<void> {
    this.#timers.delete(timer)
    this.#nowMs = Math.max(this.#nowMs, timer.dueMs)
    timer.fn()
    await letPromisesRun()
  }
}

/** Every promise reaction that can run does so before a macrotask, so one turn of the real loop is enough. */
export function letPromisesRun(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
