/**
 * How late the event loop fires timers, measured with a one-second timer. A block of a second or more is always seen, a
 * shorter one only by chance. Not perf_hooks.monitorEventLoopDelay: its 10 ms timer would cost an idle process more
 * than the worker itself.
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

  /** Starts a round of checks; forgets the round before last. */
  nextRound(): void {
    this.#worstBeforeMs = this.#worstMs
    this.#worstMs = 0
  }

  /** The worst lag of this round and the previous one, in whole ms. */
  get worstMs(): number {
    return Math.round(Math.max(this.#worstBeforeMs, this.#worstMs))
  }
}
