/** Everything that Holdfast tells about itself in this process. Logs and metrics are listeners of these. */
import type { FailureKind } from './failure.ts'
import type { LogLevel } from './record.ts'

/** Which attempt of which job, where. */
export interface AttemptFacts {
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly worker: string
  readonly attempt: number
  readonly maxAttempts: number
  readonly correlationId: string
}

export interface AttemptEnd extends AttemptFacts {
  /** From when the job was due to when it was claimed, by the store's clock. */
  readonly waitMs: number
  /** How long the handler ran. */
  readonly durationMs: number
}

export interface TickFacts {
  readonly schedule: string
  readonly job: string
  readonly jobId: string
  readonly tick: Date
  readonly lateMs: number
}

export interface Events {
  /** Not of enqueues in a caller's transaction: whether there is such a job, its commit decides. */
  'job.enqueued': {
    readonly id: string
    readonly job: string
    readonly queue: string
    readonly duplicate: boolean
  }
  'job.started': AttemptFacts & { readonly waitMs: number }
  // The ends of an attempt are told once the store has written them.
  'job.completed': AttemptEnd
  'job.failed': AttemptEnd & {
    readonly error: Error
    readonly kind: FailureKind
    readonly fingerprint: string
    /** No attempt is left, or none would help: it is a dead letter. */
    readonly final: boolean
    readonly retryInMs: number | null
  }
  'job.snoozed': AttemptEnd & { readonly delayMs: number; readonly error: Error | null }
  'job.released': AttemptEnd
  'job.cancelled': AttemptEnd & { readonly reason: string | null }
  /**
   * The store lost what the handler had committed: the effect and the completion are gone, and the job runs again.
   */
  'commit.lost': AttemptEnd
  /** The lease was gone when the attempt ended: nothing of it was written. */
  'job.lost': AttemptEnd
  'job.progress': AttemptFacts & {
    readonly done: number
    readonly total: number | null
    readonly note: string | null
  }
  'job.log': AttemptFacts & {
    readonly level: LogLevel
    readonly message: string
    readonly fields: Record<string, unknown>
  }
  /** A handler goes on although its signal fired; its slot stays taken until it returns. */
  'job.stuck': AttemptFacts & { readonly why: string }
  /** A promise that a handler left behind was rejected after the handler had returned. */
  'job.unhandled': AttemptFacts & { readonly error: Error }
  /** A lost worker's job was taken back. */
  'job.rescued': {
    readonly id: string
    readonly job: string
    readonly queue: string
    readonly worker: string
    readonly crashes: number
    readonly to: 'ready' | 'scheduled' | 'dead' | 'cancelled'
  }
  'worker.started': {
    readonly worker: string
    readonly name: string
    readonly queues: readonly string[]
    readonly concurrency: number
  }
  'worker.stopping': { readonly worker: string; readonly running: number }
  'worker.stopped': { readonly worker: string; readonly released: number }
  /** The worker's lease was taken away: it goes on under a new id. */
  'worker.reregistered': { readonly worker: string; readonly before: string; readonly abandoned: number }
  /**
   * The event loop stood still, so that neither timeouts nor cancels nor other jobs got their turn. Told when it turns
   * again, by workers on a store whose leases are renewed meanwhile.
   */
  'worker.blocked': {
    readonly worker: string
    readonly blockedMs: number
    /** What ran at the time, the most suspect first; at most 20. */
    readonly jobs: readonly { readonly id: string; readonly job: string }[]
  }
  /**
   * Something in the worker failed that should not fail: a bug of Holdfast, or a settle that the store refuses in every
   * form. The worker backs off and tries again. Outages emit `store.down`, missing rights `store.unusable`.
   */
  'worker.error': {
    readonly worker: string
    /** Completes "could not …". */
    readonly doing: string
    readonly error: Error
  }
  /** The worker paused its claims because a job ran out of resources. */
  'worker.slowed': { readonly worker: string; readonly pauseMs: number; readonly job: string }
  /** A batch handler with an adaptive size is given more jobs at a time from now on, or fewer. */
  'batch.resized': {
    readonly worker: string
    readonly job: string
    readonly queue: string
    readonly from: number
    readonly to: number
    /** Of the batches that led to it. */
    readonly meanMs: number
  }
  /** Another worker was found dead. */
  'worker.lost': { readonly worker: string; readonly jobs: number }
  /** A worker of this process, or a check of the user's, is no longer healthy, or is so again. */
  'health.changed': {
    readonly kind: 'worker' | 'check'
    /** The worker's or the check's. */
    readonly name: string
    /** The id of the worker; null for a check. */
    readonly worker: string | null
    readonly healthy: boolean
    /** What is wrong, a sentence each; empty where nothing is. */
    readonly problems: readonly string[]
  }
  'leader.elected': { readonly candidate: string }
  'leader.lost': { readonly candidate: string }
  'duty.failed': { readonly duty: string; readonly error: Error }
  'store.down': { readonly doing: string; readonly error: Error }
  'store.up': { readonly downMs: number }
  /**
   * The store's clock went back, so what is due by it runs later. Emitted by the leader. Ticks of schedules go on; those
   * between the new time and the old one come again, except the last one that fired.
   */
  'store.clock': {
    /** How far, at least. */
    readonly backMs: number
    /** Number of scheduled jobs, retries included: each is due this much later. */
    readonly scheduled: number
    /** Number of schedules that are not paused. */
    readonly schedules: number
  }
  /**
   * The store answers, but cannot be used until somebody does something: missing rights, a missing database, a full disk
   * or memory (see the error's code). Emitted once a minute at most for each code.
   */
  'store.unusable': { readonly doing: string; readonly error: Error }
  'queue.paused': { readonly queue: string }
  'queue.resumed': { readonly queue: string }
  /** Told by whoever leads, once a minute where there are more than the minute before. */
  'deadletters.grew': {
    readonly queue: string
    /** How many came, less those that went. */
    readonly grown: number
    /** How many there are. */
    readonly dead: number
    readonly overMs: number
  }
  'schedule.fired': TickFacts
  /** A tick fired more than two seconds late. */
  'schedule.late': TickFacts
  /** Ticks passed while no process could fire them, and `catchUp` does not ask for them. */
  'schedule.skipped': { readonly schedule: string; readonly job: string; readonly ticks: number }
  'schedule.paused': { readonly schedule: string }
  'schedule.resumed': { readonly schedule: string }
  /** A domain event was published that nobody subscribes to. Not of those in a caller's transaction. */
  'event.unsubscribed': { readonly event: string; readonly id: string }
  'listener.failed': { readonly event: string; readonly error: Error }
}
