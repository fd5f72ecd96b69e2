/**
 * Everything that Holdfast tells about itself in this process, and how the log words it. Logs and metrics are listeners
 * of these.
 */
import { formatDuration } from '../std/duration.ts'
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
  /**
   * Upkeep, or another call that no caller waits for, failed. `duty` completes "could not …". For an election or a note about
   * a worker only what is no outage is told: outages emit `store.down`.
   */
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

// ── in the log ───────────────────────────────────────────────────────────────

interface LogLine<Event> {
  readonly level: LogLevel | ((event: Event) => LogLevel)
  readonly text: (event: Event) => string
  /** What the attempt came to, for the events that end one. */
  readonly outcome?: (event: Event) => string
}

/** How each event is logged; an event without a line does not compile. */
export const LOG_LINES: { readonly [Name in keyof Events]: LogLine<Events[Name]> } = {
  'job.enqueued': {
    level: 'debug',
    text: ({ job, duplicate }) => `${job} ${duplicate ? 'already enqueued' : 'enqueued'}`,
  },
  'job.started': {
    level: 'debug',
    text: ({ job, attempt, maxAttempts }) => `${job} started, attempt ${attempt} of ${maxAttempts}`,
  },
  'job.completed': {
    level: 'info',
    text: ({ job, durationMs }) => `${job} completed in ${formatDuration(durationMs)}`,
    outcome: () => 'completed',
  },
  'job.failed': {
    level: ({ final }) => (final ? 'error' : 'warn'),
    text: ({ job, attempt, maxAttempts, retryInMs, kind, error }) =>
      `${job} failed, attempt ${attempt} of ${maxAttempts} (${kind}), ${fate(retryInMs)}: ${error.message}`,
    outcome: ({ final }) => (final ? 'dead' : 'retried'),
  },
  'job.snoozed': {
    level: 'info',
    text: ({ job, delayMs, error }) =>
      `${job} ${error === null ? 'snoozed' : 'parked'} for ${formatDuration(delayMs)}${error === null ? '' : `: ${error.message}`}`,
    outcome: () => 'snoozed',
  },
  'job.released': { level: 'debug', text: ({ job }) => `${job} released`, outcome: () => 'released' },
  'job.cancelled': {
    level: 'info',
    text: ({ job, reason }) => `${job} cancelled${reason === null ? '' : `: ${reason}`}`,
    outcome: () => 'cancelled',
  },
  'commit.lost': {
    level: 'error',
    text: ({ job }) => `${job} committed, but the store lost the commit; the job runs again`,
    outcome: () => 'released',
  },
  'job.lost': {
    level: 'warn',
    text: ({ job }) => `${job} was taken over by another worker; nothing was written`,
    outcome: () => 'lost',
  },
  'job.progress': {
    level: 'debug',
    text: ({ job, done, total }) => `${job} at ${done}${total === null ? '' : ` of ${total}`}`,
  },
  'job.log': { level: ({ level }) => level, text: ({ message }) => message },
  'job.stuck': {
    level: 'error',
    text: ({ job, why }) => `${job} ignored its abort signal (${why}) and is still running`,
  },
  'job.unhandled': {
    level: 'error',
    text: ({ job, error }) => `${job} left behind a promise that rejected: ${error.message}`,
  },
  'job.rescued': {
    level: 'warn',
    text: ({ job, crashes, to }) =>
      to === 'ready'
        ? `${job} released from a lost worker that had not started it`
        : `${job} rescued from a lost worker, crash ${crashes}: ${to}`,
  },
  'worker.started': {
    level: 'info',
    text: ({ queues, concurrency }) => `worker started with ${concurrency} slots on ${queues.join(', ')}`,
  },
  'worker.stopping': { level: 'info', text: ({ running }) => `worker stopping, ${running} running` },
  'worker.stopped': { level: 'info', text: ({ released }) => `worker stopped, ${released} released` },
  'worker.reregistered': {
    level: 'warn',
    text: ({ abandoned }) => `worker lost its lease and reregistered; ${abandoned} leases abandoned`,
  },
  'worker.blocked': {
    level: 'warn',
    text: ({ blockedMs, jobs }) =>
      `event loop blocked for ${formatDuration(blockedMs)}${jobs.length === 0 ? '' : ` while ${namesOf(jobs)} ran`}`,
  },
  'worker.error': {
    level: 'error',
    text: ({ doing, error }) => `worker could not ${doing}: ${error.message}`,
  },
  'worker.slowed': {
    level: 'warn',
    text: ({ pauseMs, job }) => `${job} ran out of resources; no claims for ${formatDuration(pauseMs)}`,
  },
  'deadletters.grew': {
    level: 'warn',
    text: ({ queue, grown, dead, overMs }) =>
      `${grown} new dead letters in queue ${queue} within ${formatDuration(Math.round(overMs))}; ${dead} in total`,
  },
  'batch.resized': {
    level: 'info',
    text: ({ job, from, to, meanMs }) =>
      `batches of ${job} take ${formatDuration(Math.round(meanMs))}: ${to} jobs at a time instead of ${from}`,
  },
  'worker.lost': {
    level: 'warn',
    text: ({ worker, jobs }) => `worker ${worker} was lost; ${jobs} of its jobs rescued`,
  },
  'health.changed': {
    // Recovery is a warning as well: a person alarmed by the first line waits for the second.
    level: 'warn',
    text: ({ kind, name, healthy, problems }) =>
      `${kind} ${name} is ${healthy ? 'healthy again' : `unhealthy: ${problems.join(' ')}`}`,
  },
  'leader.elected': { level: 'debug', text: () => 'elected leader of maintenance' },
  'leader.lost': { level: 'debug', text: () => 'lost the leadership of maintenance' },
  'duty.failed': { level: 'warn', text: ({ duty, error }) => `could not ${duty}: ${error.message}` },
  'store.down': { level: 'error', text: ({ error }) => error.message },
  'store.unusable': { level: 'error', text: ({ doing, error }) => `could not ${doing}: ${error.message}` },
  'store.up': { level: 'info', text: ({ downMs }) => `store answers again after ${formatDuration(downMs)}` },
  'store.clock': {
    level: 'warn',
    text: ({ backMs, scheduled, schedules }) =>
      `store clock moved back ${formatDuration(backMs)}; ${scheduled} scheduled jobs and ${schedules} schedules are due later`,
  },
  'queue.paused': { level: 'info', text: ({ queue }) => `queue ${queue} paused` },
  'queue.resumed': { level: 'info', text: ({ queue }) => `queue ${queue} resumed` },
  'schedule.fired': { level: 'debug', text: ({ schedule, job }) => `schedule ${schedule} enqueued ${job}` },
  'schedule.late': {
    level: 'warn',
    text: ({ schedule, lateMs }) => `schedule ${schedule} fired ${formatDuration(lateMs)} late`,
  },
  'schedule.skipped': {
    level: 'warn',
    text: ({ schedule, ticks }) => `schedule ${schedule} skipped ${ticks} ${ticks === 1 ? 'tick' : 'ticks'}`,
  },
  'schedule.paused': { level: 'info', text: ({ schedule }) => `schedule ${schedule} paused` },
  'schedule.resumed': { level: 'info', text: ({ schedule }) => `schedule ${schedule} resumed` },
  'event.unsubscribed': { level: 'info', text: ({ event }) => `${event} published without a subscriber` },
  'listener.failed': {
    level: 'error',
    text: ({ event, error }) => `a listener of ${event} failed: ${error.message}`,
  },
}

function fate(retryInMs: number | null): string {
  return retryInMs === null ? 'dead letter' : `retry in ${formatDuration(retryInMs)}`
}

function namesOf(jobs: readonly { readonly job: string }[]): string {
  return [...new Set(jobs.map(({ job }) => job))].join(', ')
}

export const EVENT_NAMES = Object.keys(LOG_LINES) as (keyof Events)[]
