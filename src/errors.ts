/**
 * Every error that Holdfast raises: a code to program against, a message that says what happened, and a hint that
 * says what to do. A test compares this table with docs/errors.md.
 */
import { parseDuration, type Duration } from './std/duration.ts'

/** The hint for each code, unless the place that throws gives a better one. */
export const ERROR_HINTS = {
  HF_BAD_OPTION: 'Correct the named option; the message says what it accepts.',
  HF_BAD_STORE:
    "Use 'file:.holdfast', 'postgres://…', 'redis://…' or 'memory:', or pass a store object that implements the contract of holdfast/store.",
  HF_BAD_JOB: 'Correct the job definition; the message says which part is not valid.',
  HF_BAD_SCHEDULE: 'Correct the schedule; the message says which part is not valid.',
  HF_SCHEDULE_TAKEN: 'Give the schedule its own id, or remove the other one first.',
  HF_BAD_CURSOR:
    'Pass the cursor exactly as an earlier page returned it, or none to start from the beginning.',
  HF_BAD_FILTER:
    'Say which dead letters you mean: by ids, queues, jobs, fingerprints, since or until; { all: true } means all.',
  HF_SCHEDULE_NOT_FOUND: 'The schedule was removed; create it again with job.schedule().',
  HF_BAD_EVENT: "Use parts of letters, digits, _ and -, separated by dots: 'pull_request.merged'.",
  HF_BAD_PATTERN:
    "Use parts of letters, digits, _ and -, separated by dots; '*' matches one part, '**' at the end matches one or more.",
  HF_DUPLICATE_EVENT: 'Define each event once, and import it where it is published or subscribed to.',
  HF_TOO_MANY_SUBSCRIBERS:
    'Remove subscriptions that are no longer needed (hf.subscriptions), or let one subscriber publish to the others.',
  HF_DUPLICATE_JOB: 'Give each job its own name, or define it once and import it.',
  HF_UNKNOWN_QUEUE: 'Declare the queue in holdfast({ queues: { … } }), or correct its name.',
  HF_UNKNOWN_JOB: 'Register the job in this worker, or route it to a queue that this worker does not read.',
  HF_NO_HANDLER: 'Call contract.implement(run) in the worker process, or leave the contract out of `jobs`.',
  HF_NO_JOBS: 'Define at least one job with a handler: export const sendMail = hf.job({ … }).',
  HF_UNKNOWN_WORKER: "Define it first: hf.workers.define('mail', { queues: ['mail'] }).",
  HF_DUPLICATE_WORKER: 'Give each worker its own name, or define it once.',
  HF_DUPLICATE_CHECK: 'Give each check its own name, or remove the other one first.',
  HF_BAD_MODULE: 'Check the path and that the module loads on its own.',
  HF_INVALID_INPUT: 'Correct the input; the issues name the paths that the schema refused.',
  HF_INVALID_OUTPUT: "Correct the implementation, or the contract's `output`.",
  HF_NOT_JSON: 'Pass only what JSON can hold; the message names the path and what to pass instead.',
  HF_TOO_LARGE: 'Store the large value elsewhere and pass a reference to it.',
  HF_PARTIAL_ENQUEUE:
    'All other inputs that were read are enqueued. Correct the inputs listed in `failures` and enqueue them again, with all inputs from `stoppedAt` on.',
  HF_PARTIAL_PUBLISH:
    'All other events that were read are published. Correct those listed in `failures` and publish them again, with all events from `stoppedAt` on.',
  HF_STORE_UNREACHABLE:
    'Check that the store is running and reachable, then try again; the job may have been enqueued anyway.',
  HF_STORE_DENIED:
    'Check user and password, and grant the rights that docs/stores.md lists; workers retry by themselves.',
  HF_STORE_MISSING: 'Create the database that is missing, or correct its name in the URL of the store.',
  HF_STORE_REFUSED: 'Change the value that the message names: the server cannot store it.',
  HF_STORE_LOCKED: 'Close the other connection to the database in this process, or use one store for both.',
  HF_STORE_FULL:
    'Give the server more disk or memory, or keep finished jobs for a shorter time; workers lose nothing and retry.',
  HF_STORE_DAMAGED:
    'Stop every process that uses the store and copy its directory before you do anything else; then restore a backup.',
  HF_STORE_EVICTS:
    "Set maxmemory-policy to noeviction, or pass allowEviction: true to redisStore() if lost jobs don't matter.",
  HF_INSIDE_TRANSACTION: 'Pass { tx } to calls inside commit(), or make them before or after it.',
  HF_NO_TRANSACTIONS:
    "Use a store with transactions: PostgreSQL ('postgres://…') or sqliteStore({ database }). Or leave { tx } out, and enqueue after the commit.",
  HF_STORE_CONTRACT: 'The store broke its contract; run the suite of holdfast/store/conformance against it.',
  HF_SCHEMA_TOO_NEW: 'Deploy the version of Holdfast that created the schema, or a newer one.',
  HF_SCHEMA_MISSING: 'Run the SQL that `holdfast schema` prints, or leave `migrate: false` out.',
  HF_SCHEMA_CLASH: 'Give Holdfast its own schema (`schema`) or another `prefix`, so that its names are free.',
  HF_CLOSED: 'Create a new holdfast() after close(), or close it later.',
  HF_JOB_NOT_FOUND: 'Check the id; finished jobs are deleted after their retention time.',
  HF_JOB_FAILED:
    'The job failed for good; `cause` has the last error. Fix it, then replay the job or enqueue it again.',
  HF_JOB_CANCELLED: 'The job was cancelled; the message has the reason, if one was given.',
  HF_RESULT_TIMEOUT: 'The job is not finished yet: wait longer with { timeout }, or check handle.state().',
  HF_RESULT_DROPPED: 'Return something smaller, such as a reference to the result.',
  HF_EXPIRED: 'The job expired before it could run: replay it, or raise its { expiresIn }.',
  HF_BATCH_RESULT:
    'Return one result for each job of the batch, in order (an Error for a job that failed), or nothing.',
  HF_ATTEMPT_TIMEOUT: "Raise the job's `timeout`, or make the handler watch its signal and finish sooner.",
  HF_ABORTED: 'The attempt was aborted; `why` is shutdown, timeout, cancelled or lease_lost.',
  HF_WORKER_LOST:
    'The worker died or was cut off while the job ran; look for crashes and out-of-memory kills.',
  HF_LEASE_LOST:
    'Nothing was written. Stop working on this job: it is retried, or another worker has it. Do not repeat the call.',
  HF_COMMITTED: 'Call commit() once, at the end of the handler, and return what it resolves to.',
  HF_MESSAGE_SETTLED: 'Call ack() or nack() once for each message.',
  HF_TEST_KIT: 'Create the test queue before anything uses the store, and only one at a time.',
} as const

export type ErrorCode = keyof typeof ERROR_HINTS

export interface ErrorOptions {
  readonly hint?: string
  readonly cause?: unknown
}

export class HoldfastError extends Error {
  override readonly name: string = 'HoldfastError'
  readonly code: ErrorCode
  readonly hint: string

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.hint = options.hint ?? ERROR_HINTS[code]
  }
}

/** Whether the store will fail the same way until a person fixes it: worth a retry, but not soon. */
export function isLasting(error: unknown): boolean {
  return (
    error instanceof HoldfastError && (error.code === 'HF_STORE_DENIED' || error.code === 'HF_STORE_MISSING')
  )
}

/** Whether the store could not be reached, or did not answer in time. */
export function isOutage(error: unknown): boolean {
  return hasCode(error, 'HF_STORE_UNREACHABLE')
}

/**
 * Whether the store as a whole cannot be used: it is away, full, missing or denies access (`store.down` and
 * `store.unusable` report these), or it is closed.
 */
export function isStoreFailure(error: unknown): boolean {
  return isOutage(error) || isLasting(error) || hasCode(error, 'HF_STORE_FULL') || hasCode(error, 'HF_CLOSED')
}

function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof HoldfastError && error.code === code
}

/** Whether the store refused a value in the call: the same call will always be refused. */
export function isRefusal(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'HF_STORE_REFUSED'
}

/** Ends a foreign message with a full stop, as our sentences end. */
function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`
}

/** One input of many that could not be enqueued or published. */
export interface EnqueueFailure {
  readonly index: number
  readonly error: Error
}

/** What of many inputs is missing. */
export interface Shortfall {
  readonly failed: number
  readonly failures: readonly EnqueueFailure[]
  readonly stoppedAt: number | null
}

/** What the errors of enqueueMany() and publishMany() have in common. */
abstract class PartialError extends HoldfastError implements Shortfall {
  /** How many failed; `failures` lists the first 1,000 of them by index. */
  readonly failed: number
  readonly failures: readonly EnqueueFailure[]
  /** Where reading stopped because the store failed: nothing from this index on is written. Null if all were read. */
  readonly stoppedAt: number | null

  constructor(code: ErrorCode, what: string, { failed, failures, stoppedAt }: Shortfall) {
    super(code, `${failed} ${what}.${inFull(failures[0], stoppedAt)}`, { cause: failures[0]?.error })
    this.failed = failed
    this.failures = failures
    this.stoppedAt = stoppedAt
  }
}

/** Some of many inputs were refused or not written; all others that were read are enqueued. */
export class PartialEnqueueError extends PartialError {
  override readonly name = 'PartialEnqueueError'
  readonly inserted: number
  readonly duplicates: number

  constructor(counts: { readonly inserted: number; readonly duplicates: number }, shortfall: Shortfall) {
    super('HF_PARTIAL_ENQUEUE', 'of the jobs could not be enqueued', shortfall)
    this.inserted = counts.inserted
    this.duplicates = counts.duplicates
  }
}

/** Some of many events were refused or not written; all others that were read are published. */
export class PartialPublishError extends PartialError {
  override readonly name = 'PartialPublishError'
  readonly published: number

  constructor(counts: { readonly published: number }, shortfall: Shortfall) {
    super('HF_PARTIAL_PUBLISH', 'of the events could not be published', shortfall)
    this.published = counts.published
  }
}

/** The first failure as an example, and where reading stopped. */
function inFull(first: EnqueueFailure | undefined, stoppedAt: number | null): string {
  const example =
    first === undefined ? '' : ` First, at index ${first.index}: ${sentence(first.error.message)}`
  const stop = stoppedAt === null ? '' : ` Reading stopped at index ${stoppedAt}, because the store failed.`
  return example + stop
}

export interface InputIssue {
  /** Dotted path into the input; empty for the input as a whole. */
  readonly path: string
  readonly message: string
}

/** The schema of a job or an event refused an input: when it was enqueued or, after a deploy, before the handler. */
export class InvalidInputError extends HoldfastError {
  override readonly name = 'InvalidInputError'
  readonly issues: readonly InputIssue[]

  constructor(name: string, issues: readonly InputIssue[], of: 'job' | 'event' = 'job') {
    const listed = issues
      .slice(0, 5)
      // Some libraries name the path in the message themselves.
      .map(({ path, message }) =>
        path === '' || message.startsWith(`${path} `) ? message : `${path}: ${message}`,
      )
    const more = issues.length > listed.length ? `; and ${issues.length - listed.length} more` : ''
    const reasons = sentence(`${listed.join('; ')}${more}`)
    const what = of === 'job' ? `The input of job "${name}"` : `The data of event "${name}"`
    super('HF_INVALID_INPUT', `${what} is not valid. ${reasons}`)
    this.issues = issues
  }
}

/** Why a running attempt was aborted. */
export type AbortWhy = 'shutdown' | 'timeout' | 'lease_lost' | 'cancelled'

/** Why Holdfast aborted a handler's signal; null if it did not. */
export function whyAborted(signal: AbortSignal): AbortWhy | null {
  const reason: unknown = signal.reason
  return reason instanceof Aborted ? reason.why : null
}

/** The `reason` of a handler's signal. */
export class Aborted extends HoldfastError {
  override readonly name = 'Aborted'
  readonly why: AbortWhy

  constructor(why: AbortWhy, message: string) {
    super('HF_ABORTED', message)
    this.why = why
  }
}

// ── errors that a handler throws to say what its failure means ──────────────────────────────────────────────────────────

/** A failure that no retry can fix: the job becomes a dead letter at once. */
export class Fatal extends Error {
  override readonly name = 'Fatal'
}

/** A failure with a retry delay of its own. It uses an attempt. */
export class RetryIn extends Error {
  override readonly name = 'RetryIn'
  readonly delay: Duration

  constructor(delay: Duration, message = 'The handler asked to be retried.', options?: { cause?: unknown }) {
    super(message, options)
    this.delay = readDelay(delay, 'RetryIn')
  }
}

/** A dependency of the job is down: the job is parked for a while, without using an attempt. */
export class DependencyDown extends Error {
  override readonly name = 'DependencyDown'
  readonly dependency: string
  /** Minimum delay before the job runs again. */
  readonly retryAfter: Duration | undefined

  constructor(dependency: string, options: { retryAfter?: Duration; cause?: unknown } = {}) {
    super(`${dependency} is down.`, 'cause' in options ? { cause: options.cause } : undefined)
    this.dependency = dependency
    this.retryAfter =
      options.retryAfter === undefined
        ? undefined
        : readDelay(options.retryAfter, 'DependencyDown: retryAfter')
  }
}

/**
 * Rejects an invalid delay where the handler passes it, so that the mistake shows; the job is then retried by its
 * policy.
 */
function readDelay(delay: Duration, what: string): Duration {
  const ms = parseDuration(delay)
  if (ms !== undefined && ms >= 0) return delay
  throw new HoldfastError(
    'HF_BAD_OPTION',
    `${what} was given ${JSON.stringify(delay)}, which is not a delay.`,
    {
      hint: "Use milliseconds or a string such as '250ms', '30s', '5m', '2h', '7d'.",
    },
  )
}

/** Memory, disk, file handles or a quota ran out: the job backs off for longer, and its worker slows down. */
export class ResourcesExhausted extends Error {
  override readonly name = 'ResourcesExhausted'
}
