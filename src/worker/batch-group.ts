/**
 * The attempts that were started together for a batch handler. Each goes its own way through schema and middleware, and
 * some never arrive at the handler: refused, cancelled, thrown out. Who arrives waits for the others, but not for ever:
 * after a while those who are there are a batch, and who comes later is one with whoever comes then.
 */
import type { Clock } from '../std/clock.ts'
import type { Batched } from './batched.ts'
import { BatchCall, type BatchFunction, type Member } from './batch-call.ts'

export interface BatchGroupParts {
  readonly clock: Clock
  readonly run: BatchFunction
  /** How many attempts belong to it. */
  readonly size: number
  /** Told of each call of the handler. */
  readonly onReturned?: (durationMs: number) => void
}

/** Nearly all arrive at once; one that hangs on its way must not take its company with it. */
const STRAGGLERS_MS = 1_000

export class BatchGroup {
  readonly #parts: BatchGroupParts
  /** Neither arrived nor over. */
  #onTheirWay: number
  #left: number
  #begun = 0
  #waiting: Member[] = []
  #endWait: (() => void) | undefined

  constructor(parts: BatchGroupParts) {
    this.#parts = parts
    this.#onTheirWay = parts.size
    this.#left = parts.size
  }

  /** An attempt is started; true for the first of them, which takes a slot. */
  begun(): boolean {
    return this.#begun++ === 0
  }

  /** An attempt has arrived at its handler; resolves to its own result. */
  join(attempt: Batched, context: Member['context']): Promise<unknown> {
    return new Promise((resolve, reject) => this.admit({ attempt, context, resolve, reject }))
  }

  /** An attempt has arrived at its handler. */
  admit(member: Member): void {
    const { attempt, reject } = member
    if (attempt.abort.reason !== undefined) return reject(attempt.abort.reason)
    attempt.batchCall = null
    this.#waiting.push(member)
    if (--this.#onTheirWay === 0) this.#call()
    else this.#endWait ??= this.#parts.clock.after(STRAGGLERS_MS, () => this.#call())
  }

  /** An attempt is over; true for the last of them, which gives the slot back. */
  ended(attempt: Batched): boolean {
    if (attempt.batchCall === undefined && --this.#onTheirWay === 0) this.#call()
    return --this.#left === 0
  }

  /** An attempt was told to end: it does at once where it only waits, else its call knows what to do. */
  stopped(attempt: Batched, reason: Error): void {
    attempt.batchCall?.stopped(reason)
    if (this.#waiting.length === 0) return
    for (const { reject } of this.#waiting.filter((member) => member.attempt === attempt)) reject(reason)
    this.#waiting = this.#waiting.filter((member) => member.attempt !== attempt)
  }

  #call(): void {
    this.#endWait?.()
    this.#endWait = undefined
    const members = this.#waiting
    this.#waiting = []
    if (members.length === 0) return
    const call = new BatchCall(members)
    for (const { attempt } of members) attempt.batchCall = call
    const { run, clock, onReturned } = this.#parts
    const begunMs = clock.monotonicMs()
    void call.run(run, () => onReturned?.(clock.monotonicMs() - begunMs))
  }
}
