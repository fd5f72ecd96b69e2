/**
 * "Something may have happened": a loop waits on the bell, anybody rings it. A ring that comes while nobody waits is
 * kept for the next wait, so that no wake-up falls between looking and sleeping.
 */
import type { Clock } from './clock.ts'

export class Bell {
  readonly #clock: Clock
  #rung = false
  #wake: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  ring(): void {
    if (this.#rung) return
    this.#rung = true
    this.#wake?.()
  }

  /** Until the bell rings or the time is over; true if it rang. One waiter at a time. */
  async wait(timeoutMs: number): Promise<boolean> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        const cancel = this.#clock.after(timeoutMs, resolve)
        this.#wake = () => {
          cancel()
          resolve()
        }
      })
      this.#wake = undefined
    }
    const rang = this.#rung
    this.#rung = false
    return rang
  }

  /** Until the fact holds, which is looked at whenever the bell rings, or until the deadline. */
  async until(fact: () => boolean, deadlineMs: () => number): Promise<void> {
    while (!fact()) {
      const leftMs = deadlineMs() - this.#clock.monotonicMs()
      if (leftMs <= 0) return
      await this.wait(leftMs)
    }
  }
}
