/**
 * Deadlines of running attempts on one timer: jobs of one kind share a timeout, so a new attempt's deadline is nearly
 * always later than the one already set, and starting a job sets no timer at all.
 */
import type { Clock } from '../std/clock.ts'
import type { Attempt } from './attempt.ts'

export class Timeouts {
  readonly #clock: Clock
  readonly #running: ReadonlySet<Attempt>
  readonly #onDue: (attempt: Attempt) => void
  #setForMs = Infinity
  #cancel: (() => void) | undefined

  constructor(clock: Clock, running: ReadonlySet<Attempt>, onDue: (attempt: Attempt) => void) {
    this.#clock = clock
    this.#running = running
    this.#onDue = onDue
  }

  /** Calls `onDue` when the time comes, if the attempt is still running then. */
  set(attempt: Attempt, atMs: number): void {
    attempt.timeoutAtMs = atMs
    if (atMs < this.#setForMs) this.#arm(atMs)
  }

  clear(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#setForMs = Infinity
  }

  #arm(atMs: number): void {
    this.#cancel?.()
    this.#setForMs = atMs
    this.#cancel = this.#clock.after(Math.max(1, atMs - this.#clock.monotonicMs()), () => this.#check())
  }

  #check(): void {
    this.clear()
    const nowMs = this.#clock.monotonicMs()
    for (const attempt of this.#running) {
      if (attempt.timeoutAtMs > nowMs) continue
      attempt.timeoutAtMs = Infinity
      this.#onDue(attempt)
    }
    let nextMs = Infinity
    for (const attempt of this.#running) nextMs = Math.min(nextMs, attempt.timeoutAtMs)
    if (nextMs < this.#setForMs) this.#arm(nextMs)
  }
}
