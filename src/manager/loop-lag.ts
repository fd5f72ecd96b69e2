/**
 * How late the event loop gets to its timers: one of a second's length measures it. A block of a second or more is
 * always seen, a shorter one by chance. Not perf_hooks.monitorEventLoopDelay: its timer of 10 ms would cost an idle
 * process more than the worker itself does.
 */
import type { Clock } from '../std/clock.ts'

const TURN_MS = 1_000

export class LoopLag {
  #worstBeforeMs = 0
  #worstMs = 0
  #callOff: (() => void) | undefined

  start(clock: Clock): void {
    const dueMs = clock.monotonicMs() + TURN_MS
    this.#callOff = clock.after(TURN_MS, () => {
      this.#worstMs = Math.max(this.#worstMs, clock.monotonicMs() - dueMs)
      this.start(clock)
    })
  }

  stop(): void {
    this.#callOff?.()
    this.#worstBeforeMs = 0
    this.#worstMs = 0
  }

  /** A round of checks begins: the worst of the round before last is history. */
  nextRound(): void {
    this.#worstBeforeMs = this.#worstMs
    this.#worstMs = 0
  }

  /** The worst of this round and of the one before, in whole ms. */
  get worstMs(): number {
    return Math.round(Math.max(this.#worstBeforeMs, this.#worstMs))
  }
}
