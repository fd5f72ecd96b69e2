/**
 * Events as log lines. One table gives each event its level and wording; an event without a row does not compile. No
 * event contains payloads or results, so they are never logged.
 */
import type { Events } from '../job/events.ts'
import type { LogLevel } from '../job/record.ts'
import { formatDuration } from '../std/duration.ts'
import type { Emitter } from '../std/emitter.ts'

/** The methods of a pino logger that are called; any object with these four works. */
export interface PinoLike {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

type Rows = {
  readonly [Name in keyof Events]: {
    readonly level: LogLevel | ((event: Events[Name]) => LogLevel)
    readonly text: (event: Events[Name]) => string
    /** Outcome of the attempt, for events that end one. */
    readonly outcome?: (event: Events[Name]) => string
  }
}

const ROWS: Rows = {
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

type Loggable<Event> = Event & {
  readonly error?: Error | null
  readonly level?: LogLevel
  readonly message?: string
  readonly event?: string
}

export const EVENT_NAMES = Object.keys(ROWS) as (keyof Events)[]

/** Writes every event to the logger; returns how to stop. */
export function logEvents(events: Emitter<Events>, logger: PinoLike): () => void {
  const stops = EVENT_NAMES.map((name) => logOne(events, logger, name))
  return () => stops.forEach((stop) => stop())
}

function logOne<Name extends keyof Events>(
  events: Emitter<Events>,
  logger: PinoLike,
  name: Name,
): () => void {
  const { level, text, outcome } = ROWS[name]
  return events.on(name, (event) => {
    const at = typeof level === 'function' ? level(event) : level
    // pino serialises an error under `err`. Level and message have their own place in the line: a second `level` would
    // override the logger's own when the line is parsed, and so would the `event` of a failed listener.
    const { error, level: _level, message: _message, event: of, ...fields } = event as Loggable<Events[Name]>
    const about = of === undefined ? { event: name } : { event: name, of }
    const hasError = error !== undefined && error !== null
    const ended = outcome === undefined ? {} : { outcome: outcome(event) }
    logger[at]({ ...about, ...fields, ...ended, ...(hasError ? { err: error } : {}) }, text(event))
  })
}
