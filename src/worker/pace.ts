/** When a worker looks for work without being told to, when it must not, and when the store answered last. */
import type { Clock } from '../std/clock.ts'
import type { Random } from '../std/random.ts'

export class Pace {
  readonly #clock: Clock
  readonly #random: Random
  readonly #pollMs: number
  #nextPollMs = 0
  #pausedUntilMs = 0
  #answeredMs: number

  constructor(clock: Clock, random: Random, pollMs: number) {
    this.#clock = clock
    this.#random = random
    this.#pollMs = pollMs
    this.#answeredMs = clock.monotonicMs()
  }

  /** True once each time; the next is so long after this one, give or take a tenth. */
  pollIsDue(): boolean {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs < this.#nextPollMs) return false
    this.#nextPollMs = nowMs + this.#pollMs * (0.9 + this.#random.float() * 0.2)
    return true
  }

  /** No claims for so long. */
  pause(ms: number): void {
    this.#pausedUntilMs = this.#clock.monotonicMs() + ms
  }

  get paused(): boolean {
    return this.#clock.monotonicMs() < this.#pausedUntilMs
  }

  /** When the next poll is due, or the pause is over. */
  get nextMs(): number {
    return this.paused ? Math.min(this.#nextPollMs, this.#pausedUntilMs) : this.#nextPollMs
  }

  answered(): void {
    this.#answeredMs = this.#clock.monotonicMs()
  }

  get answeredMs(): number {
    return this.#answeredMs
  }
}
