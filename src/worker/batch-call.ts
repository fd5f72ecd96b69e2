/**
 * One call of a batch handler. Each of its jobs is an attempt like any other, with its own input, middleware, timeout and
 * settlement; inside all that, they meet here. Once every one of them has come or dropped out on its way, the handler
 * is called for all of them, and each goes back with its own result or error.
 */
import { currentJob, type CurrentJob } from '../client/current-job.ts'
import { HoldfastError } from '../errors.ts'
import type { BatchContext, RunContext } from '../job/context.ts'
import type { Inherited } from '../job/new-job.ts'
import { LazyAbort } from '../std/abort.ts'
import type { Clock } from '../std/clock.ts'
import type { Attempt } from './attempt.ts'

type Context = RunContext<unknown, object>
export type BatchFunction = (batch: BatchContext<unknown, object>) => unknown

interface Member {
  readonly attempt: Attempt
  readonly context: Context
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

export interface BatchCallParts {
  readonly clock: Clock
  /** How many attempts belong to it. */
  readonly size: number
  readonly onReturned?: (durationMs: number) => void
}

export class BatchCall implements CurrentJob {
  readonly #parts: BatchCallParts
  readonly #members: Member[] = []
  readonly #abort = new LazyAbort()
  /** Ended before they got here: their input was refused, or their middleware threw. */
  #dropped = 0
  #run: BatchFunction | undefined
  #ended = 0
  #stopped = 0
  #called = false
  #returned = false

  constructor(parts: BatchCallParts) {
    this.#parts = parts
  }

  /** What jobs enqueued by the handler take over: of several causes, none. */
  get inherited(): Inherited | undefined {
    const [only, ...others] = this.#members
    return others.length === 0 ? only?.attempt.inherited : undefined
  }

  /** An attempt is ready for its handler; resolves to its own result. */
  join(attempt: Attempt, context: Context, run: BatchFunction): Promise<unknown> {
    this.#run = run
    return new Promise((resolve, reject) => {
      this.#members.push({ attempt, context, resolve, reject })
      this.#callWhenComplete()
    })
  }

  /** An attempt is over; true for the last of them, which gives the slot back. */
  ended(): boolean {
    this.#ended++
    if (!this.#called) {
      this.#dropped++
      this.#callWhenComplete()
    }
    return this.#ended === this.#parts.size
  }

  /** An attempt was told to end. The handler is, once all are. */
  stopped(reason: Error): void {
    this.#stopped++
    if (this.#stopped >= this.#members.length && this.#called) this.#abort.abort(reason)
  }

  unhandled(reason: unknown): void {
    const blamed = this.#returned ? this.#members.slice(0, 1) : this.#members
    for (const { attempt } of blamed) attempt.unhandled(reason)
  }

  #callWhenComplete(): void {
    const run = this.#run
    if (run === undefined || this.#members.length + this.#dropped < this.#parts.size) return
    this.#called = true
    void currentJob.run(this, () => this.#call(run))
  }

  async #call(run: BatchFunction): Promise<void> {
    const { clock, onReturned } = this.#parts
    const begunMs = clock.monotonicMs()
    try {
      this.#tellResults(await run(new Batch(this.#members, this.#abort)))
    } catch (error) {
      for (const { reject } of this.#members) reject(error)
    } finally {
      this.#returned = true
      onReturned?.(clock.monotonicMs() - begunMs)
    }
  }

  #tellResults(results: unknown): void {
    if (results !== undefined && !Array.isArray(results))
      throw badResults(`a ${typeof results}`, this.#members)
    if (results !== undefined && results.length !== this.#members.length)
      throw badResults(`${results.length} results`, this.#members)
    this.#members.forEach(({ resolve, reject }, index) => {
      const result: unknown = results?.[index]
      if (result instanceof Error) reject(result)
      else if (isSettled(result)) {
        if (result.status === 'fulfilled') resolve(result.value)
        else reject(result.reason)
      } else resolve(result)
    })
  }
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
