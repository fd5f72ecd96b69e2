/**
 * A job as it is written and read. States are a union: a field exists only in the states that have it.
 * Times are milliseconds since 1970 by the store's clock.
 */
import type { AttemptError } from './failure.ts'
import type { JobId, Token, WorkerId } from './ids.ts'
import type { RetryOptions } from './retry.ts'
import type { UniqueClaim } from './unique.ts'

/** What travels with a job for its handler's sake; no store ever looks inside. */
export interface Envelope {
  /** Ties together what one cause set off; null means the job's own id. */
  readonly correlationId: string | null
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
  /** Overrides of the definition's policy given at the enqueue. */
  readonly retry: RetryOptions | null
  readonly timeoutMs: number | null
  /** Missing for a job that is never too late. */
  readonly expires?: Expiry
}

/** Too late: so long after it was due, a job is pointless. */
export interface Expiry {
  readonly inMs: number
  /** When it is due at first. */
  readonly from: Due
}

/** The fields that a job has from birth. */
interface JobFacts {
  readonly id: JobId
  readonly name: string
  readonly queue: string
  /** JSON text, exactly as it was given. */
  readonly payload: string
  readonly priority: number
  /** What the priority is worth: rank = due time − head start. */
  readonly headStartMs: number
  readonly maxAttempts: number
  readonly maxCrashes: number
  readonly group: string | null
  /** Keys of the limits that must admit the job before it is ready. */
  readonly limits: readonly string[]
  readonly envelope: Envelope
}

/** When a new or rescheduled job is due: at once, after a delay by the store's clock, or at a time. */
export type Due = { readonly inMs: number } | { readonly atMs: number }

/** A job on its way into a store. */
export interface NewJob extends JobFacts {
  readonly due: Due
  readonly unique: UniqueClaim | null
}

/** A job in the hands of the worker that claimed it. */
export interface ClaimedJob extends JobFacts {
  /** As in every job. The worker clears it when it has read the input: a running job is not in memory twice. */
  payload: string
  /** This attempt's number: 1 is the first. */
  readonly attempt: number
  /** How many workers were lost with this job so far; one that has any is a suspect and claimed alone. */
  readonly crashes: number
  readonly createdAt: number
  /** When it became due: the wait is counted from here. */
  readonly dueAt: number
}

export interface Progress {
  readonly done: number
  readonly total: number | null
  readonly note: string | null
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface JobLogLine {
  readonly at: number
  readonly level: LogLevel
  readonly message: string
  /** JSON text of the line's fields. */
  readonly fields: string | null
}

/** completed, failed, cancelled: by its handler's end · parked: a dependency was down · crashed: its worker was lost */
export type AttemptOutcome = 'completed' | 'failed' | 'cancelled' | 'parked' | 'crashed'

/** What is remembered of one attempt. Times by the store's clock, as far as the worker can tell. */
export interface AttemptRecord {
  readonly attempt: number
  readonly worker: WorkerId
  readonly startedAt: number
  readonly durationMs: number
  readonly outcome: AttemptOutcome
  readonly error: RecordedError | null
}

/** An error without its stack, which is kept of the newest alone. */
export type RecordedError = Omit<AttemptError, 'stack' | 'attempt'>

interface StoredFacts extends JobFacts {
  /** Claims that count: a claim that was handed back does not. */
  readonly attempt: number
  readonly crashes: number
  readonly createdAt: number
  readonly dueAt: number
  readonly uniqueKey: string | null
  /** The newest failure, if any. */
  readonly error: AttemptError | null
  /** The newest attempts that left a record, oldest first. */
  readonly attempts: readonly AttemptRecord[]
  /** The newest lines that handlers logged, oldest first. */
  readonly log: readonly JobLogLine[]
  readonly progress: Progress | null
}

export interface WaitingJob extends StoredFacts {
  readonly state: 'scheduled' | 'blocked' | 'ready'
}

export interface RunningJob extends StoredFacts {
  readonly state: 'running'
  readonly worker: WorkerId
  readonly token: Token
  readonly claimedAt: number
  /** A cancel that the worker has not carried out yet. */
  readonly cancelRequested: boolean
}

interface FinishedFacts extends StoredFacts {
  readonly finishedAt: number
}

export interface CompletedJob extends FinishedFacts {
  readonly state: 'completed'
  /** JSON text; null where the handler returned nothing, or something too large to keep. */
  readonly result: string | null
  readonly resultDropped: boolean
  /** How long the handler ran. */
  readonly runMs: number
  /** Who completed it. */
  readonly worker: WorkerId
}

export interface DeadJob extends FinishedFacts {
  readonly state: 'dead'
  readonly error: AttemptError
}

export interface CancelledJob extends FinishedFacts {
  readonly state: 'cancelled'
  readonly reason: string | null
}

export type JobRecord = WaitingJob | RunningJob | CompletedJob | DeadJob | CancelledJob

/** All that is remembered, with the attempt that completed the job: of that one the record itself tells. */
export function attemptsOf(record: JobRecord): readonly AttemptRecord[] {
  if (record.state !== 'completed') return record.attempts
  const { attempt, worker, finishedAt, runMs: durationMs } = record
  const startedAt = finishedAt - durationMs
  return [...record.attempts, { attempt, worker, startedAt, durationMs, outcome: 'completed', error: null }]
}
