/** What a handler is given: one object, no magic. */
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
  /** Shared by everything that one cause set off; jobs enqueued by this handler inherit it. */
  readonly correlationId: string
  readonly tags: readonly string[]
  /** Carried along to jobs that this handler enqueues. */
  readonly metadata: Readonly<Record<string, string>>
}

/** Returned by a handler that wants to run again later without having used an attempt. */
export interface Snooze {
  readonly type: 'snooze'
  readonly delayMs: number
}

/**
 * A transaction as a client of `pg` has it: pass it to `{ tx }`, or to whatever takes such a client. With
 * `sqliteStore({ database })` it is a handle of your library instead, so say which: `commit(async (tx: Database) => …)`.
 */
export interface CommitTx {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: unknown[] }>
}

export interface RunContext<In, Ctx> {
  readonly input: In
  /** What the middleware added. */
  readonly ctx: Ctx
  /** Aborts with the reason: shutdown, timeout, cancelled or lease_lost. */
  readonly signal: AbortSignal
  /** Lines that are kept with the job and go to the process's log. */
  readonly log: Logger
  readonly job: JobInfo
  /** Grows with every claim of this job: hand it to systems that can refuse an older one. */
  readonly fence: bigint
  // Functions in properties, not methods: handlers take them out of the object, which a linter must not mind.
  readonly progress: (done: number, total?: number, note?: string) => void
  /**
   * On PostgreSQL and on SQLite databases of yours: what `write` does through its transaction and this job's completion
   * are committed together, or not at all; the job's result is what it resolves to. The transaction begins here, so that a
   * long handler holds nothing. It may run again where the database asks for that, so keep other effects out of it. On
   * SQLite it holds the only write lock, so it is given one second.
   */
  readonly commit: <R, T = CommitTx>(write: (tx: T) => Promise<R>) => Promise<R>
  /** `return snooze('5m')`: run again later without using an attempt. */
  readonly snooze: (delay: Duration) => Snooze
}

/** What a batch handler is given. */
export interface BatchContext<In, Ctx> {
  /** Each with an input, a signal, a log and all else of its own, in the order in which they were claimed. */
  readonly jobs: readonly RunContext<In, Ctx>[]
  /** The inputs of these jobs. */
  readonly inputs: readonly In[]
  /** Aborts once every job of the batch has been told to end. */
  readonly signal: AbortSignal
}

export type RunFunction = (context: RunContext<unknown, object>) => unknown
