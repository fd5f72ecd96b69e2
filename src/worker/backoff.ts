/** The pauses of a loop whose tries fail: longer each time, jittered, short again after a success. */
import { isLasting } from '../errors.ts'
import { sleep, type Clock } from '../std/clock.ts'
import type { Random } from '../std/random.ts'

const FIRST_MS = 50
const LONGEST_MS = 2_000
/** While the store denies access, say: nothing changes until a person does something. */
const LONGEST_LASTING_MS = 10_000

export class Backoff {
  readonly #clock: Clock
  readonly #random: Random
  #pauseMs = FIRST_MS

  constructor(clock: Clock, random: Random) {
    this.#clock = clock
    this.#random = random
  }

  reset(): void {
    this.#pauseMs = FIRST_MS
  }

  /** Counted from when the try began: one that hung until its deadline was pause enough. */
  async pause(triedMs: number, error?: unknown): Promise<void> {
    const leftMs = triedMs + this.#pauseMs * (0.5 + this.#random.float() / 2) - this.#clock.monotonicMs()
    this.#pauseMs = Math.min(this.#pauseMs * 2, isLasting(error) ? LONGEST_LASTING_MS : LONGEST_MS)
    if (leftMs > 0) await sleep(this.#clock, leftMs)
  }
}
