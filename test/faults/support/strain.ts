/**
 * How loaded the machine is: the longest delay of a timer, or of a plain query to the server. The time limits suit an idle
 * machine; a loaded one gets more time.
 */
import type { Store } from '../../../src/stores/store.ts'
import type { JobId } from '../../../src/job/ids.ts'

const EVERY_MS = 100
/** A delay that is normal. */
const USUAL_MS = 150
/** A test waits for many steps, each of which may be late. */
const STEPS = 10

const NOBODY = '00000000-0000-0000-0000-000000000000' as JobId

export class Strain {
  readonly #store: Store
  #worstMs = 0
  #stopped = false
  readonly #measuring: Promise<void>

  /** Takes a store that bypasses the proxy. Failed queries do not count: the server may be down. */
  constructor(store: Store) {
    this.#store = store
    this.#measuring = this.#measure()
  }

  /** Extends a time limit by the strain seen so far. */
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
