/** Lets a test wait for what its listeners bring about, without polling. */
import { systemClock } from '../../src/std/clock.ts'

/** Far beyond what anything takes: a loaded machine is not a failure. */
const DEADLINE_MS = 25_000

/** Call `notify` after every change that a test may wait for. */
export class Signal {
  readonly #waiting = new Set<() => void>()

  readonly notify = (): void => {
    for (const look of this.#waiting) look()
  }

  /**
   * Waits until the fact holds: until it neither throws an assertion nor returns false. It is checked at once and after
   * each `notify`. Rejects at the deadline, with what the fact threw last.
   */
  until(fact: () => unknown, deadlineMs = DEADLINE_MS): Promise<void> {
    return new Promise((resolve, reject) => {
      let why: unknown
      const end = (): void => {
        cancel()
        this.#waiting.delete(look)
      }
      const look = (): void => {
        try {
          if (fact() === false) return
        } catch (error) {
          why = error
          return
        }
        end()
        resolve()
      }
      const cancel = systemClock.after(deadlineMs, () => {
        end()
        reject(why ?? new Error(`This did not come true within ${deadlineMs} ms: ${fact.toString()}`))
      })
      this.#waiting.add(look)
      look()
    })
  }
}
