/**
 * The attempts that a worker starts together for a batch handler. Each passes its own schema and middleware, and some
 * never reach the handler because they are refused or cancelled. An attempt that reaches it waits for the others, for a
 * second at most: then those that are there are called as a batch, and later ones form another.
 */
import type { Core } from '../core/core.ts'
import { BatchCall, BatchMember, type Batched, type BatchFunction } from './batch-call.ts'
import { tellWorkerError } from './worker-error.ts'

export interface BatchGroupParts {
  readonly core: Core
  readonly run: BatchFunction
  /** Number of attempts in the group. */
  readonly size: number
  /** Called after each call of the handler. */
  readonly onReturned?: (durationMs: number) => void
}

/** How long an attempt waits for the others. Nearly all arrive at once. */
const STRAGGLERS_MS = 1_000

export class BatchGroup {
  readonly #parts: BatchGroupParts
  /** Neither arrived nor over. */
  #onTheirWay: number
  #left: number
  #begun = 0
  #waiting: BatchMember[] = []
  #endWait: (() => void) | undefined

  constructor(parts: BatchGroupParts) {
    this.#parts = parts
    this.#onTheirWay = parts.size
    this.#left = parts.size
  }

  /** An attempt starts; true for the first one, which takes the slot. */
  begun(): boolean {
    return this.#begun++ === 0
  }

  /** An attempt has reached its handler. */
  join(attempt: Batched, context: BatchMember['context']): BatchMember {
    const member = new BatchMember(attempt, context)
    if (attempt.abortedFor !== undefined) {
      member.reject(attempt.abort.reason)
      return member
    }
    attempt.batchCall = null
    this.#waiting.push(member)
    if (--this.#onTheirWay === 0) this.#call()
    else this.#endWait ??= this.#parts.core.clock.after(STRAGGLERS_MS, () => this.#call())
    return member
  }

  /** An attempt has ended; true for the last one, which frees the slot. */
  ended(attempt: Batched): boolean {
    const isLast = --this.#left === 0
    if (attempt.batchCall === undefined && --this.#onTheirWay === 0) this.#call()
    return isLast
  }

  /** An attempt was told to end. If it still waits for the others, it ends at once; otherwise its call decides. */
  stopped(attempt: Batched, reason: Error): void {
    attempt.batchCall?.stopped(reason)
    if (this.#waiting.length === 0) return
    const stopped = this.#waiting.filter((member) => member.attempt === attempt)
    this.#waiting = this.#waiting.filter((member) => member.attempt !== attempt)
    for (const member of stopped) member.reject(reason)
  }

  #call(): void {
    this.#endWait?.()
    this.#endWait = undefined
    const members = this.#waiting
    this.#waiting = []
    const [first] = members
    if (first === undefined) return
    const call = new BatchCall(members)
    for (const { attempt } of members) attempt.batchCall = call
    const { run, core, onReturned } = this.#parts
    const { clock, instrumentation } = core
    const begunMs = clock.monotonicMs()
    // The last member to arrive calls the others as well: none of this belongs to that one job.
    instrumentation
      .outside(() => call.run(instrumentation, run, () => onReturned?.(clock.monotonicMs() - begunMs)))
      .catch((error: unknown) => tellWorkerError(core, first.attempt.worker, 'end a batch', error))
  }
}
