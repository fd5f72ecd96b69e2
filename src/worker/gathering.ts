/** Gathers claimed jobs for batch handlers, by name, until there are enough or the oldest has waited long enough. */
import type { Core } from '../core/core.ts'
import type { BatchRules } from '../job/batch.ts'
import type { JobDefinition } from '../job/definition.ts'
import type { Attempt } from './attempt.ts'
import { BatchGroup } from './batch-group.ts'
import { BatchSize, type Resized } from './batch-size.ts'
import { batchFunction } from './execute.ts'

/** Jobs for one call of a batch handler. */
export interface Gathered {
  readonly definition: JobDefinition
  readonly attempts: readonly Attempt[]
  /** Receives how long the call took. */
  readonly size: BatchSize
}

/** The jobs of one batch handler. */
export class Gatherer {
  /** The oldest first. */
  attempts: Attempt[] = []
  readonly definition: JobDefinition
  readonly size: BatchSize
  readonly #rules: BatchRules

  constructor(definition: JobDefinition, rules: BatchRules, onResized: (resized: Resized) => void) {
    this.definition = definition
    this.#rules = rules
    this.size = new BatchSize(rules.size, onResized)
  }

  oldestMs(): number {
    return this.attempts[0]?.receivedMs ?? Infinity
  }

  /** When a batch can start: once enough are there, or the oldest has waited long enough. */
  readyMs(): number {
    const { fill, waitMs } = this.#rules
    const enough = this.attempts[Math.min(fill, this.size.now) - 1]
    return Math.min(enough?.receivedMs ?? Infinity, this.oldestMs() + waitMs)
  }

  take(): Gathered {
    const { definition, size } = this
    return { definition, size, attempts: this.attempts.splice(0, size.now) }
  }
}

/** Makes the attempts one call of their handler. */
export function joinBatch(core: Core, { definition, size }: Gathered, attempts: readonly Attempt[]): void {
  if (attempts.length === 0) return
  const onReturned = (ms: number): void => size.ended(ms)
  const batch = new BatchGroup({ run: batchFunction(definition), core, size: attempts.length, onReturned })
  for (const attempt of attempts) attempt.batch = batch
}
