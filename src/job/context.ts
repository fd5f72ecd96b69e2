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
  /** `return snooze('5m')`: run again later without using an attempt. */
  readonly snooze: (delay: Duration) => Snooze
}

export type RunFunction = (context: RunContext<unknown, object>) => unknown
