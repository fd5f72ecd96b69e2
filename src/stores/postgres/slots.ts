/** A limited number of permits, first come first served, and no wait without an end. */
import type { Clock } from '../../std/clock.ts'

interface Waiting {
  readonly grant: () => void
  readonly refuse: (error: Error) => void
}

export class Slots {
  readonly #clock: Clock
  readonly #waiting = new Set<Waiting>()
  #free: number

  constructor(clock: Clock, count: number) {
    this.#clock = clock
    this.#free = count
  }

  /** Resolves with the permit taken; rejects with `late()` where none came free in time. */
  take(waitMs: number, late: () => Error): Promise<void> {
    if (this.#free > 0) {
      this.#free--
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        cancel()
        this.#waiting.delete(waiting)
      }
      const waiting: Waiting = {
        grant: () => {
          leave()
          resolve()
        },
        refuse: (error) => {
          leave()
          reject(error)
        },
      }
      const cancel = this.#clock.after(waitMs, () => waiting.refuse(late()))
      this.#waiting.add(waiting)
    })
  }

  /** A permit goes straight to whoever waits longest. */
  give(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#free++
    else next.grant()
  }

  refuseAll(error: () => Error): void {
    for (const waiting of this.#waiting) waiting.refuse(error())
  }
}
