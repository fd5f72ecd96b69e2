/**
 * When a worker calls the store. One call at a time, as a rule: what happens meanwhile travels with the next one. Where
 * there is much to settle or to claim a second call is made beside the first, so that the store and the handlers of
 * this process work at the same time instead of waiting for each other.
 */
import { Bell } from '../std/bell.ts'
import { sleep, type Clock } from '../std/clock.ts'

export interface CallLoopParts {
  readonly clock: Clock
  /** How many jobs a call would settle or claim now, whichever is more. */
  readonly size: () => number
  /** How long there is nothing to do unless the bell rings. */
  readonly idleMs: () => number
  /** One call; it never rejects. */
  readonly call: () => Promise<void>
}

const MOST_CALLS = 2
/** So many jobs are worth a second call; fewer travel better together, with the next one (64: 5 % more CPU per job). */
const MANY = 256
/** While a call is under way nothing needs to be looked at before it ends, which rings. */
const CALL_WAIT_MS = 1_000

export class CallLoop {
  readonly #parts: CallLoopParts
  readonly #bell: Bell
  #underWay = 0
  /** Rung since the last call began. */
  #asked = false
  #ended = false

  constructor(parts: CallLoopParts) {
    this.#parts = parts
    this.#bell = new Bell(parts.clock)
  }

  /** There may be something to do. */
  ring(): void {
    this.#asked = true
    this.#bell.ring()
  }

  /** No further call begins. */
  end(): void {
    this.#ended = true
    this.#bell.ring()
  }

  /** Resolves when it is ended and the last call is over. */
  async run(): Promise<void> {
    while (!this.#ended) {
      if (!(await this.#timeToCall())) continue
      // Lets all that finishes in this moment travel in one settle, and the process breathe between two turns.
      await sleep(this.#parts.clock, 0)
      this.#begin()
    }
    while (this.#underWay > 0) await this.#bell.wait(CALL_WAIT_MS)
  }

  /** Waits where it is not; false where it has to be looked at again. */
  async #timeToCall(): Promise<boolean> {
    const { size, idleMs } = this.#parts
    if (this.#underWay > 0) {
      if (this.#underWay < MOST_CALLS && size() >= MANY) return true
      await this.#bell.wait(CALL_WAIT_MS)
      return false
    }
    if (this.#asked || size() > 0) return true
    // The end of a call rings as well; that alone is no reason for another one.
    const rang = await this.#bell.wait(idleMs())
    return !rang || this.#asked
  }

  #begin(): void {
    this.#asked = false
    this.#underWay++
    void this.#parts.call().finally(() => {
      this.#underWay--
      this.#bell.ring()
    })
  }
}
