/**
 * One call of a batch handler. Inside of its own attempt each job waits for its company here; then the handler is called
 * for all of them, and each goes back with its own result or error.
 */
import { currentJob, type CurrentJob } from '../core/current-job.ts'
import { HoldfastError } from '../errors.ts'
import type { BatchContext, RunContext } from '../job/context.ts'
import type { Inherited } from '../job/new-job.ts'
import { LazyAbort } from '../std/abort.ts'
import { isThenable } from '../std/thenable.ts'
import type { Batched } from './batched.ts'

type Context = RunContext<unknown, object>
export type BatchFunction = (batch: BatchContext<unknown, object>) => unknown

/** An attempt that is ready for its handler. */
export interface Member {
  readonly attempt: Batched
  readonly context: Context
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

export class BatchCall implements CurrentJob {
  readonly #members: readonly Member[]
  readonly #abort = new LazyAbort()
  #returned = false

  constructor(members: readonly Member[]) {
    this.#members = members
  }

  /** What jobs enqueued by the handler take over: of several causes, none. */
  get inherited(): Inherited | undefined {
    const [only, ...others] = this.#members
    return others.length === 0 ? only?.attempt.inherited : undefined
  }

  /** An attempt was told to end. The handler is, once all are. */
  stopped(reason: Error): void {
    if (this.#members.every(({ attempt }) => attempt.abortedFor !== undefined)) this.#abort.abort(reason)
  }

  unhandled(reason: unknown): void {
    const blamed = this.#returned ? this.#members.slice(0, 1) : this.#members
    for (const { attempt } of blamed) attempt.unhandled(reason)
  }

  /** Never rejects. `onReturned` comes before any member goes on, so that what it learns holds for the next batch. */
  async run(run: BatchFunction, onReturned: () => void): Promise<void> {
    let tellMember: (member: Member, index: number) => void
    try {
      const returned = await currentJob.run(this, run, new Batch(this.#members, this.#abort))
      const results = readResults(returned, this.#members)
      // They may be promises; the call is over when the last of them is.
      const ended = results.some(isThenable) ? await Promise.allSettled(results) : results
      tellMember = (member, index) => tell(member, ended[index])
    } catch (error) {
      tellMember = ({ reject }) => reject(error)
    }
    this.#returned = true
    onReturned()
    this.#members.forEach(tellMember)
  }
}

/** One for each member, in order. */
function readResults(returned: unknown, members: readonly Member[]): readonly unknown[] {
  if (returned === undefined) return members.map(() => undefined)
  if (!Array.isArray(returned)) throw badResults(`a ${typeof returned}`, members)
  if (returned.length !== members.length) throw badResults(`${returned.length} results`, members)
  return returned
}

/** An Error fails it, alone or as what a promise came to. */
function tell({ resolve, reject }: Member, result: unknown): void {
  const { isFailure, value } = judge(result)
  if (isFailure) reject(value)
  else resolve(value)
}

/** A proxy can throw when it is merely asked for its class: that fails its own job, and nobody else's. */
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

function badResults(returned: string, members: readonly Member[]): HoldfastError {
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

  constructor(members: readonly Member[], abort: LazyAbort) {
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
