/**
 * A job as it is written and read. States are a union: a field exists only in the states that have it.
 * Times are milliseconds since 1970 by the store's clock.
 */
import type { AttemptError } from './failure.ts'
import type { JobId, Token, WorkerId } from './ids.ts'
import type { RetryOptions } from './retry.ts'
import type { UniqueClaim } from './unique.ts'

/** Data that travels with a job for its handler; stores never look inside. */
export interface Envelope {
  /** Shared by all jobs with the same cause; null means the job's own id. */
  readonly correlationId: string | null
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
  /** Overrides of the definition's policy given at the enqueue. */
  readonly retry: RetryOptions | null
  readonly timeoutMs: number | null
  /** Missing for a job that does not expire. */
  readonly expires?: Expiry
}

/** Expiry: how long after its due time a job is still worth running. */
export interface Expiry {
  readonly inMs: number
  /** When it is first due. */
  readonly from: Due
}

/** The fields that a job has from the start. */
interface JobFacts {
  readonly id: JobId
  readonly name: string
  readonly queue: string
  /** JSON text, exactly as written. */
  readonly payload: string
  readonly priority: number
  /** Head start of its priority: rank = due time − head start. */
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

/** A job that a worker has claimed. */
export interface ClaimedJob extends JobFacts {
  /**
   * As in every job. The worker clears it once it has parsed the input, so that a running job is not in memory twice.
   */
  payload: string
  /** This attempt's number: 1 is the first. */
  readonly attempt: number
  /** Number of workers lost with this job so far; a job with any is a suspect and is claimed alone. */
  readonly crashes: number
  readonly createdAt: number
  /** When it became due: the wait is measured from here. */
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

/**
 * completed, failed, cancelled: how its handler ended · parked: a dependency was down · crashed: its worker was lost
 */
export type AttemptOutcome = 'completed' | 'failed' | 'cancelled' | 'parked' | 'crashed'

/** Record of one attempt. Times are by the store's clock, as estimated by the worker. */
export interface AttemptRecord {
  readonly attempt: number
  readonly worker: WorkerId
  readonly startedAt: number
  readonly durationMs: number
  readonly outcome: AttemptOutcome
  readonly error: RecordedError | null
}

/** An error without its stack; only the newest error keeps its stack. */
export type RecordedError = Omit<AttemptError, 'stack' | 'attempt'>

interface StoredFacts extends JobFacts {
  /** Number of claims that count: a released claim does not. */
  readonly attempt: number
  readonly crashes: number
  readonly createdAt: number
  readonly dueAt: number
  readonly uniqueKey: string | null
  /** The newest failure, if any. */
  readonly error: AttemptError | null
  /** The newest recorded attempts, oldest first. */
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
  /** A requested cancel that the worker has not carried out yet. */
  readonly cancelRequested: boolean
}

interface FinishedFacts extends StoredFacts {
  readonly finishedAt: number
}

export interface CompletedJob extends FinishedFacts {
  readonly state: 'completed'
  /** JSON text; null if the handler returned nothing, or a result too large to keep. */
  readonly result: string | null
  readonly resultDropped: boolean
  /** How long the handler ran. */
  readonly runMs: number
  /** The worker that completed it. */
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

/** All recorded attempts. The completing attempt has no record of its own: it is derived from the job. */
export function attemptsOf(record: JobRecord): readonly AttemptRecord[] {
  if (record.state !== 'completed') return record.attempts
  const { attempt, worker, finishedAt, runMs: durationMs } = record
  const startedAt = finishedAt - durationMs
  return [...record.attempts, { attempt, worker, startedAt, durationMs, outcome: 'completed', error: null }]
}
