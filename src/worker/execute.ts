/**
 * One attempt, as a pipeline: find the handler, read the input, run the handler inside the middleware, and say how it
 * ended. Never throws: whatever happens is an outcome.
 */
import type { Core } from '../core/core.ts'
import { currentJob } from '../core/current-job.ts'
import { HoldfastError } from '../errors.ts'
import type { JobDefinition } from '../job/definition.ts'
import { classify } from '../job/failure.ts'
import { runInside } from '../job/middleware.ts'
import { checkOutput, encodeResult, parseInput } from '../job/payload.ts'
import { EXPIRED, expiresAt, isFirst } from '../job/expiry.ts'
import type { Outcome } from '../job/settlement.ts'
import { formatDuration } from '../std/duration.ts'
import { isThenable } from '../std/thenable.ts'
import type { CompletedSettlement } from '../stores/store.ts'
import type { Attempt } from './attempt.ts'
import type { BatchFunction } from './batch-call.ts'
import { BatchGroup } from './batch-group.ts'
import { JobContext, jobInfo, SnoozeRequest } from './context.ts'
import type { Reporter } from './reporter.ts'

type Jobs = ReadonlyMap<string, JobDefinition>

/** Null where the attempt lost its lease: it has no outcome. */
export async function execute(
  core: Core,
  attempt: Attempt,
  jobs: Jobs,
  reporter: Reporter,
): Promise<Outcome | null> {
  try {
    const returned = await currentJob.run(attempt, runHandler, core, attempt, jobs, reporter)
    return instead(attempt) ?? (attempt.phase === 'lost' ? null : returned)
  } catch (thrown) {
    return outcomeOfThrow(attempt, thrown)
  }
}

/** What counts more than what the handler returned. */
function instead({ committed: done, unhandledRejection }: Attempt): Outcome | null {
  if (done !== undefined) return committed(done)
  return unhandledRejection === undefined ? null : failed(unhandledRejection.reason)
}

/** Of a handler without an output to be checked. Null where the attempt lost its lease. */
export function outcomeOfReturn(attempt: Attempt, returned: unknown): Outcome | null {
  const other = instead(attempt)
  if (other !== null || attempt.phase === 'lost') return other
  if (returned instanceof SnoozeRequest) return { type: 'snoozed', delayMs: returned.delayMs }
  return succeeded(returned)
}

export function outcomeOfThrow(attempt: Attempt, thrown: unknown): Outcome | null {
  return attempt.committed === undefined ? outcomeOf(attempt, thrown) : committed(attempt.committed)
}

async function runHandler(core: Core, attempt: Attempt, jobs: Jobs, reporter: Reporter): Promise<Outcome> {
  const definition = handlerFor(attempt, jobs)
  // Awaited only where there is something to wait for: of a job that does nothing, awaits are a good part of the cost.
  const read = readInput(attempt, definition)
  const input = read instanceof Promise ? ((await read) as unknown) : read
  const run = (ctx: object): unknown => {
    // The schema and the middleware may have taken their time. Whoever aborted the attempt relies on it that nothing starts.
    if (attempt.abort.reason !== undefined) throw attempt.abort.reason
    const context = new JobContext({ core, attempt, reporter, definition }, input, ctx)
    if (definition.batch === undefined) return definition.run(context)
    // One that came without company is a batch all the same.
    attempt.batch ??= new BatchGroup({ run: batchFunction(definition), clock: core.clock, size: 1 })
    return attempt.batch.join(attempt, context)
  }
  const ran =
    definition.middleware.length === 0
      ? run(NOTHING_ADDED)
      : runInside(
          definition.middleware,
          { job: () => jobInfo(attempt), signal: () => attempt.abort.signal },
          run,
        )
  const returned = isThenable(ran) ? await ran : ran
  if (returned instanceof SnoozeRequest) return { type: 'snoozed', delayMs: returned.delayMs }
  const checked = checkOutput(definition.output, returned, definition.name)
  return succeeded(checked instanceof Promise ? await checked : checked)
}

/** What a batch job's `run` really takes. */
export function batchFunction({ run }: JobDefinition): BatchFunction {
  return run as unknown as BatchFunction
}

/** The context of a handler that no middleware stands around. */
export const NOTHING_ADDED = Object.freeze({})

interface RunnableDefinition extends JobDefinition {
  readonly run: NonNullable<JobDefinition['run']>
}

function handlerFor(attempt: Attempt, jobs: Jobs): RunnableDefinition {
  const definition = jobs.get(attempt.job.name)
  if (definition?.run !== undefined) return definition as RunnableDefinition
  throw new HoldfastError('HF_UNKNOWN_JOB', `This worker has no handler for job "${attempt.job.name}".`)
}

/** Once per attempt: clears the payload. */
export function readInput({ job }: Attempt, { schema, name }: JobDefinition): unknown {
  const raw: unknown = JSON.parse(job.payload)
  job.payload = ''
  return parseInput(schema, raw, name)
}

function succeeded(returned: unknown): Outcome {
  const { json, dropped } = encodeResult(returned)
  return { type: 'succeeded', result: json, resultDropped: dropped }
}

/** What it has committed is what it came to. */
function committed({ result, resultDropped }: CompletedSettlement): Outcome {
  return { type: 'committed', result, resultDropped }
}

function failed(thrown: unknown): Outcome {
  return { type: 'failed', thrown, kind: classify(thrown) }
}

/** A handler that was told to end and then throws has ended for that reason, whatever it throws. */
function outcomeOf(attempt: Attempt, thrown: unknown): Outcome | null {
  switch (attempt.abortedFor) {
    case undefined:
      return failed(thrown)
    case 'lease_lost':
      return null
    case 'timeout':
    case 'cancelled':
    case 'shutdown':
      return outcomeOfAbort(attempt)
  }
}

/** The outcome of an attempt that was told to end and did not finish its work. */
export function outcomeOfAbort(attempt: Attempt): Outcome {
  if (attempt.committed !== undefined) return committed(attempt.committed)
  switch (attempt.abortedFor) {
    case 'shutdown':
      return { type: 'interrupted' }
    case 'cancelled':
      return { type: 'cancelled', reason: attempt.cancelReason }
    case 'timeout':
    case 'lease_lost':
    case undefined:
      return failed(timedOut(attempt))
  }
}

/** What becomes of an attempt that is too late to be started; null where it is in time. */
export function lateOutcome({ job, claimedAt, receivedMs }: Attempt, nowMs: number): Outcome | null {
  if (job.envelope.expires === undefined || claimedAt + (nowMs - receivedMs) < expiresAt(job)) return null
  // One that has failed before stays what it is, a failure: with all that it went through, and to be replayed.
  if (isFirst(job)) return { type: 'cancelled', reason: EXPIRED }
  const error = new HoldfastError('HF_EXPIRED', `Job "${job.name}" was too late for another attempt.`)
  return { type: 'failed', thrown: error, kind: 'permanent' }
}

function timedOut({ job, timeoutMs }: Attempt): HoldfastError {
  const message = `Job "${job.name}" ran longer than its timeout of ${formatDuration(timeoutMs)}.`
  return new HoldfastError('HF_ATTEMPT_TIMEOUT', message)
}
