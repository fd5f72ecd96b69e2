/**
 * How strained the machine is: the longest that a timer was late, or a plain query of the server took. Bounds are what a
 * machine that is not keeps easily; one that is busy with other things gets more time, and is no failure.
 */
import type { Store } from '../../../src/stores/store.ts'
import type { JobId } from '../../../src/job/ids.ts'

const EVERY_MS = 100
/** So much is nothing out of the ordinary. */
const USUAL_MS = 150
/** What is waited for takes many steps, each of which may be late. */
const STEPS = 10

const NOBODY = '00000000-0000-0000-0000-000000000000' as JobId

export class Strain {
  readonly #store: Store
  #worstMs = 0
  #stopped = false
  readonly #measuring: Promise<void>

  /** The store is asked by a way that nothing breaks; while its server is away, that says nothing. */
  constructor(store: Store) {
    this.#store = store
    this.#measuring = this.#measure()
  }

  /** What may take so long may take this long here and now. */
  allow(ms: number): number {
    return this.#worstMs <= USUAL_MS ? ms : ms + STEPS * this.#worstMs
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#measuring
  }

  async #measure(): Promise<void> {
    while (!this.#stopped) {
      const begun = performance.now()
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
      this.#note(performance.now() - begun - EVERY_MS)
      const asked = performance.now()
      await this.#store.admin.get(NOBODY).then(
        () => this.#note(performance.now() - asked),
        () => undefined,
      )
    }
  }

  #note(ms: number): void {
    this.#worstMs = Math.max(this.#worstMs, ms)
  }
}
