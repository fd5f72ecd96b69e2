/** The handler's context: one object, no magic. */
import type { Duration } from '../std/duration.ts'

export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

export interface JobInfo {
  readonly id: string
  readonly name: string
  readonly queue: string
  /** This attempt's number: 1 is the first. */
  readonly attempt: number
  readonly maxAttempts: number
  /** How many workers were lost while they ran this job. */
  readonly crashes: number
  readonly enqueuedAt: Date
  /** Shared by everything with the same cause; jobs enqueued by this handler inherit it. */
  readonly correlationId: string
  readonly tags: readonly string[]
  /** Inherited by jobs that this handler enqueues. */
  readonly metadata: Readonly<Record<string, string>>
}

/** Returned by a handler to run again later without using an attempt. */
export interface Snooze {
  readonly type: 'snooze'
  readonly delayMs: number
}

/**
 * A transaction with the interface of a `pg` client: pass it to `{ tx }`, or to any code that takes such a client. With
 * `sqliteStore({ database })` it is a handle of your library instead, so name its type: `commit(async (tx: Database) =>
 * …)`.
 */
export interface CommitTx {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: unknown[] }>
}

export interface RunContext<In, Ctx> {
  readonly input: In
  /** Fields added by middleware. */
  readonly ctx: Ctx
  /** Aborts with the reason: shutdown, timeout, cancelled or lease_lost. */
  readonly signal: AbortSignal
  /** Log lines, kept with the job and written to the process's log. */
  readonly log: Logger
  readonly job: JobInfo
  /** Fencing token. It grows with every claim of this job: pass it to systems that can reject an older one. */
  readonly fence: bigint
  // Function properties, not methods: handlers destructure them, and linters must allow that.
  readonly progress: (done: number, total?: number, note?: string) => void
  /**
   * On PostgreSQL and on your own SQLite database: commits the writes of `write`'s transaction together with this job's
   * completion, or neither. The job's result is the value that it resolves to. The transaction begins here, so a long
   * handler holds no locks. `write` may run again if the database asks for a retry, so keep other effects out of it. On
   * SQLite it holds the only write lock, so it has one second.
   */
  readonly commit: <R, T = CommitTx>(write: (tx: T) => Promise<R>) => Promise<R>
  /** `return snooze('5m')`: run again later without using an attempt. */
  readonly snooze: (delay: Duration) => Snooze
}

/** The context of a batch handler. */
export interface BatchContext<In, Ctx> {
  /** One context per job, with its own input, signal and log, in the order they were claimed. */
  readonly jobs: readonly RunContext<In, Ctx>[]
  /** The inputs of these jobs. */
  readonly inputs: readonly In[]
  /** Aborts once the signals of all jobs in the batch have aborted. */
  readonly signal: AbortSignal
}

export type RunFunction = (context: RunContext<unknown, object>) => unknown
