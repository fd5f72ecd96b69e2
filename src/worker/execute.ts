/**
 * One attempt, as a pipeline: find the handler, read the input, run the handler inside the middleware, and say how it
 * ended. Never throws: whatever happens is an outcome. Nothing is awaited unless there is something to wait for: for a
 * handler that returns at once, promises would be a good part of the cost of its job.
 */
import type { Core } from '../core/core.ts'
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
import { BatchMember, type BatchFunction } from './batch-call.ts'
import { BatchGroup } from './batch-group.ts'
import { JobContext, jobInfo, SnoozeRequest, type ContextParts } from './context.ts'

export interface Execution extends ContextParts {
  readonly core: Core
  /** Called once. The outcome is null if the attempt lost its lease. */
  ended(attempt: Attempt, outcome: Outcome | null): void
}

/** Runs the handler of an attempt and tells `execution` how it ended, at once if nothing had to be waited for. */
export function execute(execution: Execution, attempt: Attempt): void {
  let ran: Outcome | Promise<Outcome> | BatchMember
  try {
    ran = execution.core.instrumentation.inAttempt(attempt, runHandler, execution)
  } catch (thrown) {
    return execution.ended(attempt, outcomeOfThrow(attempt, thrown))
  }
  if (ran instanceof Promise || ran instanceof BatchMember) waitFor(execution, attempt, ran)
  else execution.ended(attempt, outcomeOfReturn(attempt, ran))
}

function waitFor(execution: Execution, attempt: Attempt, ran: Promise<Outcome> | BatchMember): void {
  const failed = (thrown: unknown): void => execution.ended(attempt, outcomeOfThrow(attempt, thrown))
  const returned = (outcome: Outcome): void => execution.ended(attempt, outcomeOfReturn(attempt, outcome))
  if (ran instanceof Promise) void ran.then(returned, failed)
  else
    ran.listen((result) => {
      let outcome: Outcome
      try {
        outcome = outcomeOfResult(result)
      } catch (thrown) {
        return failed(thrown)
      }
      returned(outcome)
    }, failed)
}

/** What a commit or an unhandled rejection says counts more than what the handler returned. */
function outcomeOfReturn(attempt: Attempt, outcome: Outcome): Outcome | null {
  const { committed: done, unhandledRejection } = attempt
  if (done !== undefined) return committed(done)
  if (unhandledRejection !== undefined) return failed(unhandledRejection.reason)
  return attempt.phase === 'lost' ? null : outcome
}

function outcomeOfThrow(attempt: Attempt, thrown: unknown): Outcome | null {
  return attempt.committed === undefined ? outcomeOf(attempt, thrown) : committed(attempt.committed)
}

function runHandler(execution: Execution, attempt: Attempt): Outcome | Promise<Outcome> | BatchMember {
  const definition = handlerFor(attempt)
  const input = readInput(attempt, definition)
  if (!(input instanceof Promise)) return callHandler(execution, attempt, definition, input)
  return input.then((read: unknown) => {
    const called = callHandler(execution, attempt, definition, read)
    return called instanceof BatchMember ? called.promise().then(outcomeOfResult) : called
  })
}

function callHandler(
  execution: Execution,
  attempt: Attempt,
  definition: RunnableDefinition,
  input: unknown,
): Outcome | Promise<Outcome> | BatchMember {
  const { middleware, output } = definition
  const returned =
    middleware.length === 0
      ? enterHandler(execution, attempt, definition, input, NOTHING_ADDED)
      : runInside(middleware, { job: () => jobInfo(attempt), signal: () => attempt.abort.signal }, (ctx) => {
          const entered = enterHandler(execution, attempt, definition, input, ctx)
          return entered instanceof BatchMember ? entered.promise() : entered
        })
  if (returned instanceof BatchMember)
    return output === undefined ? returned : returned.promise().then((value) => checked(definition, value))
  if (isThenable(returned)) return Promise.resolve(returned).then((value) => checked(definition, value))
  return checked(definition, returned)
}

/** The schema and the middleware may have taken their time. An attempt that was aborted meanwhile must not start. */
function enterHandler(
  execution: Execution,
  attempt: Attempt,
  definition: RunnableDefinition,
  input: unknown,
  ctx: object,
): unknown {
  const aborted = attempt.abortedFor === undefined ? undefined : attempt.abort.reason
  if (aborted !== undefined) throw aborted
  const context = new JobContext(execution, attempt, definition, input, ctx)
  if (definition.batch === undefined) return definition.run(context)
  // A job that came without company is a batch of one.
  attempt.batch ??= new BatchGroup({
    run: batchFunction(definition),
    core: execution.core,
    size: 1,
  })
  return attempt.batch.join(attempt, context)
}

/** Shared by all handlers that return nothing. */
const SUCCEEDED: Outcome = Object.freeze({ type: 'succeeded', result: null, resultDropped: false })

function checked(definition: JobDefinition, returned: unknown): Outcome | Promise<Outcome> {
  const { output, name } = definition
  if (output === undefined || returned instanceof SnoozeRequest) return outcomeOfResult(returned)
  const result = checkOutput(output, returned, name)
  return result instanceof Promise ? result.then(outcomeOfResult) : outcomeOfResult(result)
}

function outcomeOfResult(returned: unknown): Outcome {
  if (returned === undefined) return SUCCEEDED
  if (returned instanceof SnoozeRequest) return { type: 'snoozed', delayMs: returned.delayMs }
  const { json, dropped } = encodeResult(returned)
  return { type: 'succeeded', result: json, resultDropped: dropped }
}

/** What a batch job's `run` really takes. */
export function batchFunction({ run }: JobDefinition): BatchFunction {
  return run as unknown as BatchFunction
}

/** The context of a handler without middleware. */
const NOTHING_ADDED = Object.freeze({})

interface RunnableDefinition extends JobDefinition {
  readonly run: NonNullable<JobDefinition['run']>
}

function handlerFor({ job, definition }: Attempt): RunnableDefinition {
  if (definition?.run !== undefined) return definition as RunnableDefinition
  throw new HoldfastError('HF_UNKNOWN_JOB', `This worker has no handler for job "${job.name}".`)
}

/** Once per attempt: clears the payload. */
function readInput({ job }: Attempt, { schema, name }: JobDefinition): unknown {
  const raw: unknown = job.payload === 'null' ? null : JSON.parse(job.payload)
  job.payload = ''
  return parseInput(schema, raw, name)
}

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

/** The outcome of an attempt that is too late to be started; null if it is in time. */
export function lateOutcome({ job, claimedAt, receivedMs }: Attempt, nowMs: number): Outcome | null {
  if (job.envelope.expires === undefined || claimedAt + (nowMs - receivedMs) < expiresAt(job)) return null
  // A job that has failed before stays a failure, with its history, so that it can be replayed.
  if (isFirst(job)) return { type: 'cancelled', reason: EXPIRED }
  const error = new HoldfastError('HF_EXPIRED', `Job "${job.name}" was too late for another attempt.`)
  return { type: 'failed', thrown: error, kind: 'permanent' }
}

function timedOut({ job, timeoutMs }: Attempt): HoldfastError {
  const message = `Job "${job.name}" ran longer than its timeout of ${formatDuration(timeoutMs)}.`
  return new HoldfastError('HF_ATTEMPT_TIMEOUT', message)
}
