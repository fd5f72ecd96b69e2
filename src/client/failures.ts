/** What of many inputs could not be written, by index. Bounded: the inputs may have no end. */
import type { EnqueueFailure } from '../errors.ts'
import { toError } from '../std/text.ts'

const MAX_LISTED = 1_000

export class Failures {
  /** A store that fails to its deadline ends the reading. */
  storeFailed = false
  /** The index from which on nothing was read any more. */
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

  /** The first of them, in order. */
  list(): readonly EnqueueFailure[] {
    return this.#listed.sort((a, b) => a.index - b.index)
  }
}
