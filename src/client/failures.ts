/** Inputs that could not be written, by index. Bounded, because the inputs may be endless. */
import type { EnqueueFailure } from '../errors.ts'
import { toError } from '../job/settlement.ts'

const MAX_LISTED = 1_000

export class Failures {
  /** A store that fails until its deadline stops the reading. */
  storeFailed = false
  /** The first index that was not read. */
  stoppedAt: number | null = null
  readonly #listed: EnqueueFailure[] = []
  #count = 0

  get count(): number {
    return this.#count
  }

  add(index: number, error: unknown): void {
    this.#count++
    if (this.#listed.length < MAX_LISTED) this.#listed.push({ index, error: toError(error) })
  }

  /** The first failures, in order. */
  list(): readonly EnqueueFailure[] {
    return this.#listed.sort((a, b) => a.index - b.index)
  }
}
