/** A limited number of permits, first come first served. Every wait has a deadline. */
import type { Clock } from '../../std/clock.ts'

interface Waiting {
  readonly grant: () => void
  readonly refuse: (error: Error) => void
}

export class Permits {
  readonly #clock: Clock
  readonly #waiting = new Set<Waiting>()
  #free: number

  constructor(clock: Clock, count: number) {
    this.#clock = clock
    this.#free = count
  }

  /** Takes a permit; rejects with `late()` if none becomes free in time. */
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

  /** Gives a permit back: to the caller that has waited longest, if any waits. */
  give(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#free++
    else next.grant()
  }

  refuseAll(error: () => Error): void {
    for (const waiting of this.#waiting) waiting.refuse(error())
  }
}
