/**
 * "Something may have happened": a loop waits on the bell, other code rings it. A ring with no waiter is kept for the
 * next wait, so that no wake-up is lost between checking and sleeping.
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

  /** Waits until the bell rings or the time has passed; true if it rang. One waiter at a time. */
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

  /** Waits until the fact holds, which is checked whenever the bell rings, or until the deadline. */
  async until(fact: () => boolean, deadlineMs: () => number): Promise<void> {
    while (!fact()) {
      const leftMs = deadlineMs() - this.#clock.monotonicMs()
      if (leftMs <= 0) return
      await this.wait(leftMs)
    }
  }
}
