/** Parses a schedule as users write it: everything is validated before anything is stored. */
import { HoldfastError } from '../errors.ts'
import { duration, readDuration } from '../job/duration.ts'
import { SCHEDULED_FIELDS, type NewJobOptions } from '../job/new-job.ts'
import {
  asGiven,
  coded,
  oneOf,
  options,
  readersFor,
  readOptions,
  refused,
  under,
  whole,
  type Read,
} from '../job/options.ts'
import { show } from '../job/show.ts'
import type { Duration } from '../std/duration.ts'
import { messageOf } from '../std/text.ts'
import { ticksOf, type DstPolicy, type Timing } from './timing.ts'
import { Zone } from './zone.ts'

/** What to do with ticks that passed while no process could fire them. */
export type CatchUp = 'skip' | 'latest' | 'all'
/** What to do at a tick if the previous tick's job is unfinished. */
export type Overlap = 'allow' | 'skip' | 'queue'

export interface ScheduleRules {
  /** `skip` fires none of them, `latest` only the last, `all` each of them, oldest first. @default 'latest' */
  readonly catchUp?: CatchUp
  /** Maximum number of ticks that `catchUp: 'all'` fires; it keeps the latest. @default 1,000 */
  readonly catchUpLimit?: number
  /** `allow` runs both at once, `skip` skips the tick, `queue` waits until that job is finished. @default 'allow' */
  readonly overlap?: Overlap
  /** Maximum random delay of each tick's job, so that not all run on the hour. @default none */
  readonly jitter?: Duration
  /** Options of the jobs that it enqueues. The schedule itself sets when they run and their unique key. */
  readonly options?: Omit<NewJobOptions, 'in' | 'at' | 'unique'>
}

export interface CronSpec {
  /** Five fields, or six with seconds in front; also L, W, # and names such as MON or @daily. */
  readonly cron: string
  /** An IANA zone such as 'Europe/Berlin'. @default 'UTC' */
  readonly tz?: string
  /** What to do when the clocks go forward or back. @default 'once' */
  readonly dst?: DstPolicy
}

export interface EverySpec {
  /** At least a second. Counted from 1970 in UTC, so that every process agrees: '1h' ticks on the hour. */
  readonly every: Duration
}

export type ScheduleSpec<In = unknown> = (CronSpec | EverySpec) &
  ScheduleRules &
  (unknown extends In
    ? { readonly input?: In }
    : void extends In
      ? { readonly input?: undefined }
      : undefined extends In
        ? { readonly input?: In }
        : { readonly input: In })

/** As stored, without the job itself. */
export interface Rules {
  readonly timing: Timing
  readonly catchUp: CatchUp
  readonly catchUpLimit: number
  readonly overlap: Overlap
  readonly jitterMs: number
}

const SHORTEST_MS = 1_000
const MOST_CAUGHT_UP = 100_000
const ID = /^[\w.:/@-]{1,200}$/

export function readScheduleId(id: unknown): string {
  if (typeof id === 'string' && ID.test(id)) return id
  throw bad(
    `${show(id)} is not a valid schedule name.`,
    'Use 1 to 200 letters, digits and _ . : / @ - without spaces.',
  )
}

const BAD = 'HF_BAD_SCHEDULE'
const FIELDS = readersFor<CronSpec & EverySpec & ScheduleRules & { readonly input?: unknown }>()({
  cron: asGiven,
  tz: readZone,
  dst: under(BAD, oneOf('once', 'skip', 'both')),
  every: readInterval,
  catchUp: under(BAD, oneOf('skip', 'latest', 'all')),
  catchUpLimit: under(BAD, whole(1, MOST_CAUGHT_UP)),
  overlap: under(BAD, oneOf('allow', 'skip', 'queue')),
  jitter: duration({ orZero: true }),
  // Judged by the job's schema.
  input: asGiven,
  options: options(SCHEDULED_FIELDS),
})

export function readRules(spec: unknown, path: string): Rules {
  const given = readOptions(spec, path, FIELDS, BAD)
  const { catchUp = 'latest', catchUpLimit = 1_000, overlap = 'allow', jitter = 0 } = given
  return { timing: readTiming(given, path), catchUp, catchUpLimit, overlap, jitterMs: Math.round(jitter) }
}

function readTiming(given: Read<typeof FIELDS>, path: string): Timing {
  const { cron, every, tz = 'UTC', dst = 'once' } = given
  if ((cron === undefined) === (every === undefined))
    throw bad(
      `\`${path}\` needs either \`cron\` or \`every\`.`,
      "Such as { cron: '0 9 * * *' } or { every: '15m' }.",
    )
  if (every !== undefined) {
    for (const field of ['tz', 'dst'] as const)
      if (given[field] !== undefined)
        throw bad(`\`${path}.${field}\` goes with \`cron\`, not with \`every\`.`, CRON_HINT)
    return every
  }
  const timing: Timing = { cron: cron as string, tz, dst }
  if (typeof cron !== 'string' || firstTick(timing, path) === null)
    throw coded(
      BAD,
      refused(`${path}.cron`, cron, 'a cron pattern that matches at least one time', CRON_HINT),
    )
  return timing
}

function readZone(tz: unknown, path: string): string {
  if (typeof tz === 'string' && Zone.find(tz) !== null) return tz
  const hint = "Use an IANA name such as 'Europe/Berlin' or 'UTC'."
  throw coded(BAD, refused(path, tz, 'a time zone', hint))
}

function readInterval(every: unknown, path: string): Timing {
  const everyMs = readDuration(every, path)
  if (everyMs >= SHORTEST_MS && Number.isInteger(everyMs)) return { every: everyMs }
  const hint = "Use '1s', '15m' or '1d'."
  throw coded(BAD, refused(path, every, 'a duration of a second or more, in whole milliseconds', hint))
}

const CRON_HINT =
  "Use five fields, or six with seconds in front: '0 9 * * MON-FRI' is at nine on weekdays, '*/15 * * * *' every 15 minutes."

/** The first tick after a fixed day; null if the pattern never matches, such as on 30 February. */
function firstTick(timing: Timing, path: string): number | null {
  try {
    return ticksOf(timing)(Date.UTC(2026, 0, 1))
  } catch (error) {
    const why = messageOf(error).replace(/^CronPattern: /, '')
    throw bad(`The cron pattern \`${path}.cron\` cannot be read: ${why}`, CRON_HINT)
  }
}

function bad(message: string, hint: string): HoldfastError {
  return new HoldfastError('HF_BAD_SCHEDULE', message, { hint })
}
