/** One call of a batch handler, for all of its members. Each member ends with its own result or error. */
import type { Instrumentation, ObservedAttempt, ObservedBatch } from '../core/instrumentation.ts'
import { HoldfastError, type AbortWhy } from '../errors.ts'
import type { BatchContext, RunContext } from '../job/context.ts'
import type { Inherited } from '../job/new-job.ts'
import { LazyAbort } from '../std/abort.ts'
import { isThenable } from '../std/thenable.ts'

type Context = RunContext<unknown, object>
export type BatchFunction = (batch: BatchContext<unknown, object>) => unknown

/** The part of an attempt that a batch needs. */
export interface Batched extends ObservedAttempt {
  readonly worker: string
  readonly abort: LazyAbort
  /** Why its signal was aborted; undefined if it was not. */
  readonly abortedFor: AbortWhy | undefined
  readonly inherited: Inherited
  /** The call that it is in; null while it waits for the others, undefined before. */
  batchCall: { stopped(reason: Error): void } | null | undefined
}

/**
 * One job of a batch: an attempt that is ready for its handler, and later its own result or error. Not a promise, since
 * promises would be most of the cost of a job that does nothing.
 */
export class BatchMember {
  readonly attempt: Batched
  readonly context: Context
  #ended: { readonly isFailure: boolean; readonly value: unknown } | undefined
  #onResult: ((result: unknown) => void) | undefined
  #onError: ((error: unknown) => void) | undefined

  constructor(attempt: Batched, context: Context) {
    this.attempt = attempt
    this.context = context
  }

  resolve(result: unknown): void {
    this.#end(false, result)
  }

  reject(error: unknown): void {
    this.#end(true, error)
  }

  /** Calls one of the two: at once if the member has ended already. */
  listen(onResult: (result: unknown) => void, onError: (error: unknown) => void): void {
    this.#onResult = onResult
    this.#onError = onError
    if (this.#ended !== undefined) this.#tell(this.#ended)
  }

  promise(): Promise<unknown> {
    return new Promise((resolve, reject) => this.listen(resolve, reject))
  }

  #end(isFailure: boolean, value: unknown): void {
    if (this.#ended !== undefined) return
    this.#ended = { isFailure, value }
    this.#tell(this.#ended)
  }

  #tell({ isFailure, value }: { readonly isFailure: boolean; readonly value: unknown }): void {
    if (isFailure) this.#onError?.(value)
    else this.#onResult?.(value)
  }
}

export class BatchCall implements ObservedBatch {
  readonly #members: readonly BatchMember[]
  readonly #abort = new LazyAbort()
  #returned = false

  constructor(members: readonly BatchMember[]) {
    this.#members = members
  }

  get attempts(): readonly Batched[] {
    return this.#members.map(({ attempt }) => attempt)
  }

  /** Jobs that the handler enqueues inherit nothing if the batch has several jobs. */
  get inherited(): Inherited | undefined {
    const [only, ...others] = this.#members
    return others.length === 0 ? only?.attempt.inherited : undefined
  }

  /** An attempt's signal was aborted. The handler's aborts once all of them have. */
  stopped(reason: Error): void {
    if (this.#members.every(({ attempt }) => attempt.abortedFor !== undefined)) this.#abort.abort(reason)
  }

  unhandled(reason: unknown): void {
    const blamed = this.#returned ? this.#members.slice(0, 1) : this.#members
    for (const { attempt } of blamed) attempt.unhandled(reason)
  }

  /**
   * Calls `onReturned` before any member ends, so that the next batch has the new size. Whatever goes wrong, every member
   * ends; rejects afterwards with what one of them, or `onReturned`, has thrown.
   */
  async run(seam: Instrumentation, run: BatchFunction, onReturned: () => void): Promise<void> {
    let tellMember: (member: BatchMember, index: number) => void
    try {
      const returned = await seam.inBatch(this, run, new Batch(this.#members, this.#abort))
      const results = readResults(returned, this.#members)
      // They may be promises; the call is over when the last of them is.
      const ended = results.some(isThenable) ? await Promise.allSettled(results) : results
      tellMember = (member, index) => tell(member, ended[index])
    } catch (error) {
      tellMember = (member) => member.reject(error)
    }
    this.#returned = true
    let bug: { readonly error: unknown } | undefined
    try {
      onReturned()
    } catch (error) {
      bug = { error }
    }
    this.#members.forEach((member, index) => {
      try {
        tellMember(member, index)
      } catch (error) {
        bug ??= { error }
      }
    })
    if (bug !== undefined) throw bug.error
  }
}

/** One for each member, in order. */
function readResults(returned: unknown, members: readonly BatchMember[]): readonly unknown[] {
  if (returned === undefined) return members.map(() => undefined)
  if (!Array.isArray(returned)) throw badResults(`a ${typeof returned}`, members)
  if (returned.length !== members.length) throw badResults(`${returned.length} results`, members)
  return returned
}

/** An Error fails it, alone or as what a promise came to. */
function tell(member: BatchMember, result: unknown): void {
  const { isFailure, value } = judge(result)
  if (isFailure) member.reject(value)
  else member.resolve(value)
}

/** A proxy can throw even from instanceof: that fails its own job only. */
function judge(result: unknown): { readonly isFailure: boolean; readonly value: unknown } {
  try {
    if (!isSettled(result)) return { isFailure: result instanceof Error, value: result }
    return result.status === 'rejected' ? { isFailure: true, value: result.reason } : judge(result.value)
  } catch (error) {
    return { isFailure: true, value: error }
  }
}

/** As Promise.allSettled() gives them. */
function isSettled(result: unknown): result is PromiseSettledResult<unknown> {
  if (typeof result !== 'object' || result === null || !('status' in result)) return false
  const { status } = result
  return (status === 'fulfilled' && 'value' in result) || (status === 'rejected' && 'reason' in result)
}

function badResults(returned: string, members: readonly BatchMember[]): HoldfastError {
  const name = members[0]?.context.job.name
  return new HoldfastError(
    'HF_BATCH_RESULT',
    `The handler of batch job "${name}" returned ${returned} for ${members.length} jobs.`,
  )
}

/** What the handler is given. */
class Batch implements BatchContext<unknown, object> {
  readonly jobs: readonly Context[]
  readonly #abort: LazyAbort

  constructor(members: readonly BatchMember[], abort: LazyAbort) {
    this.jobs = members.map(({ context }) => context)
    this.#abort = abort
  }

  get inputs(): readonly unknown[] {
    return this.jobs.map(({ input }) => input)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }
}
