/** The events that Holdfast emits in this process. Logs and metrics listen to these. */
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
  /** Time from when the job was due until it was claimed, by the store's clock. */
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
  /** Not emitted for enqueues in a caller's transaction: whether the job exists depends on its commit. */
  'job.enqueued': {
    readonly id: string
    readonly job: string
    readonly queue: string
    readonly duplicate: boolean
  }
  'job.started': AttemptFacts & { readonly waitMs: number }
  // The end of an attempt is emitted once the store has written it.
  'job.completed': AttemptEnd
  'job.failed': AttemptEnd & {
    readonly error: Error
    readonly kind: FailureKind
    readonly fingerprint: string
    /** No attempts are left, or none would help: the job is a dead letter. */
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
  /** A handler keeps running although its signal aborted; its slot stays taken until it returns. */
  'job.stuck': AttemptFacts & { readonly why: string }
  /** A promise that the handler left behind rejected after the handler had returned. */
  'job.unhandled': AttemptFacts & { readonly error: Error }
  /** A job of a lost worker was rescued. */
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
  /** The worker lost its lease and continues under a new id. */
  'worker.reregistered': { readonly worker: string; readonly before: string; readonly abandoned: number }
  /**
   * The event loop was blocked, so timeouts, cancels and other jobs were delayed. Emitted once it is unblocked, by
   * workers whose leases a thread renews meanwhile.
   */
  'worker.blocked': {
    readonly worker: string
    readonly blockedMs: number
    /** Jobs that were running, the most likely culprit first; at most 20. */
    readonly jobs: readonly { readonly id: string; readonly job: string }[]
  }
  /**
   * A failure inside the worker: a bug in Holdfast, or a settle that the store refuses in every form. The worker backs
   * off and retries. Outages emit `store.down`, missing rights `store.unusable`.
   */
  'worker.error': {
    readonly worker: string
    /** Completes "could not …". */
    readonly doing: string
    readonly error: Error
  }
  /** The worker paused its claims because a job ran out of resources. */
  'worker.slowed': { readonly worker: string; readonly pauseMs: number; readonly job: string }
  /** The adaptive size of a batch handler grew or shrank. */
  'batch.resized': {
    readonly worker: string
    readonly job: string
    readonly queue: string
    readonly from: number
    readonly to: number
    /** Mean duration of the batches that led to the change. */
    readonly meanMs: number
  }
  /** Another worker's lease expired. */
  'worker.lost': { readonly worker: string; readonly jobs: number }
  /** A worker of this process, or one of the user's checks, became unhealthy or healthy again. */
  'health.changed': {
    readonly kind: 'worker' | 'check'
    /** Name of the worker or the check. */
    readonly name: string
    /** The id of the worker; null for a check. */
    readonly worker: string | null
    readonly healthy: boolean
    /** A sentence for each problem; empty if healthy. */
    readonly problems: readonly string[]
  }
  'leader.elected': { readonly candidate: string }
  'leader.lost': { readonly candidate: string }
  'duty.failed': { readonly duty: string; readonly error: Error }
  'store.down': { readonly doing: string; readonly error: Error }
  'store.up': { readonly downMs: number }
  /**
   * The store's clock moved back, so scheduled jobs run later. Emitted by the leader. Schedules keep firing; ticks
   * between the new time and the old one fire again, except the last one that fired.
   */
  'store.clock': {
    /** Minimum distance that it moved back. */
    readonly backMs: number
    /** Number of scheduled jobs, retries included: each is due this much later. */
    readonly scheduled: number
    /** Number of schedules that are not paused. */
    readonly schedules: number
  }
  /**
   * The store answers, but cannot be used until a person intervenes: missing rights, a missing database, a full disk or
   * memory (see the error's code). Emitted at most once a minute for each code.
   */
  'store.unusable': { readonly doing: string; readonly error: Error }
  'queue.paused': { readonly queue: string }
  'queue.resumed': { readonly queue: string }
  /** Emitted by the leader, at most once a minute, if the number grew. */
  'deadletters.grew': {
    readonly queue: string
    /** New dead letters minus removed ones. */
    readonly grown: number
    /** Current number. */
    readonly dead: number
    readonly overMs: number
  }
  'schedule.fired': TickFacts
  /** A tick fired more than two seconds late. */
  'schedule.late': TickFacts
  /** Ticks that passed while no process could fire them, and that `catchUp` leaves out. */
  'schedule.skipped': { readonly schedule: string; readonly job: string; readonly ticks: number }
  'schedule.paused': { readonly schedule: string }
  'schedule.resumed': { readonly schedule: string }
  /** A domain event without subscribers was published. Not emitted for events in a caller's transaction. */
  'event.unsubscribed': { readonly event: string; readonly id: string }
  'listener.failed': { readonly event: string; readonly error: Error }
}
