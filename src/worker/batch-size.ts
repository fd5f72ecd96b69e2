/** Number of jobs that a batch handler gets at a time. It depends on how long the last batches took. */
import type { SizeRules } from '../job/batch.ts'

export interface Resized {
  readonly from: number
  readonly to: number
  /** Mean duration of the batches that led to it. */
  readonly meanMs: number
}

export class BatchSize {
  readonly #rules: SizeRules
  readonly #onResized: (resized: Resized) => void
  #now: number
  #batches = 0
  #totalMs = 0

  constructor(rules: SizeRules, onResized: (resized: Resized) => void) {
    this.#rules = rules
    this.#onResized = onResized
    this.#now = rules.start
  }

  get now(): number {
    return this.#now
  }

  /** A batch took this long. Each size is evaluated by its own batches. */
  ended(durationMs: number): void {
    const { min, max, over, shrinkAboveMs, growBelowMs } = this.#rules
    if (min === max) return
    this.#batches++
    this.#totalMs += durationMs
    if (this.#batches < over) return
    const meanMs = this.#totalMs / this.#batches
    this.#batches = 0
    this.#totalMs = 0
    const from = this.#now
    if (meanMs > shrinkAboveMs) this.#now = Math.max(min, Math.floor(from / 2))
    else if (meanMs < growBelowMs) this.#now = Math.min(max, Math.ceil(from * 1.5))
    if (this.#now !== from) this.#onResized({ from, to: this.#now, meanMs })
  }
}
