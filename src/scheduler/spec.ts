/** Parses a schedule as users write it: everything is validated before anything is stored. */
import { HoldfastError } from '../errors.ts'
import { readDuration } from '../job/duration.ts'
import type { NewJobOptions } from '../job/new-job.ts'
import { show } from '../job/show.ts'
import type { Duration } from '../std/duration.ts'
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

const FIELDS: ReadonlySet<string> = new Set([
  'cron',
  'tz',
  'dst',
  'every',
  'catchUp',
  'catchUpLimit',
  'overlap',
  'jitter',
  'input',
  'options',
])
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

export function readRules(spec: ScheduleSpec): Rules {
  if (typeof spec !== 'object' || spec === null)
    throw bad('A schedule must be an object.', "Such as { cron: '0 9 * * *' } or { every: '15m' }.")
  for (const field of Object.keys(spec)) {
    if (!FIELDS.has(field))
      throw bad(`A schedule has no option "${field}".`, `Use ${[...FIELDS].join(', ')}.`)
  }
  const { catchUpLimit = 1_000, jitter } = spec
  if (!Number.isInteger(catchUpLimit) || catchUpLimit < 1 || catchUpLimit > MOST_CAUGHT_UP)
    throw bad(`catchUpLimit is ${show(catchUpLimit)}.`, `Use a whole number from 1 to ${MOST_CAUGHT_UP}.`)
  return {
    timing: readTiming(spec),
    catchUp: oneOf(spec.catchUp, 'catchUp', ['latest', 'skip', 'all']),
    catchUpLimit,
    overlap: oneOf(spec.overlap, 'overlap', ['allow', 'skip', 'queue']),
    jitterMs: jitter === undefined ? 0 : Math.round(readDuration(jitter, 'jitter', { orZero: true })),
  }
}

function readTiming(spec: Partial<CronSpec & EverySpec>): Timing {
  const { cron, every } = spec
  if ((cron === undefined) === (every === undefined))
    throw bad(
      'A schedule needs either `cron` or `every`.',
      "Such as { cron: '0 9 * * *' } or { every: '15m' }.",
    )
  if (every !== undefined) return readInterval(spec, every)
  const tz = spec.tz ?? 'UTC'
  if (typeof tz !== 'string' || Zone.find(tz) === null)
    throw bad(`There is no time zone ${show(tz)}.`, "Use an IANA name such as 'Europe/Berlin' or 'UTC'.")
  const timing: Timing = { cron: cron as string, tz, dst: oneOf(spec.dst, 'dst', ['once', 'skip', 'both']) }
  if (typeof cron !== 'string' || firstTick(timing) === null)
    throw bad(`The cron pattern ${show(cron)} never comes.`, CRON_HINT)
  return timing
}

function readInterval(spec: Partial<CronSpec>, every: Duration): Timing {
  for (const field of ['tz', 'dst'] as const)
    if (spec[field] !== undefined)
      throw bad(`\`${field}\` goes with \`cron\`, not with \`every\`.`, CRON_HINT)
  const everyMs = readDuration(every, 'every')
  if (everyMs < SHORTEST_MS || !Number.isInteger(everyMs))
    throw bad(`every is ${show(every)}, which is too short.`, "Use a second or more: '1s', '15m', '1d'.")
  return { every: everyMs }
}

const CRON_HINT =
  "Use five fields, or six with seconds in front: '0 9 * * MON-FRI' is at nine on weekdays, '*/15 * * * *' every 15 minutes."

/** The first tick after a fixed day; null if the pattern never matches, such as on 30 February. */
function firstTick(timing: Timing): number | null {
  try {
    return ticksOf(timing)(Date.UTC(2026, 0, 1))
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error)
    throw bad(`The cron pattern cannot be read: ${why}`, CRON_HINT)
  }
}

function oneOf<const T extends string>(
  value: T | undefined,
  option: string,
  choices: readonly [T, ...T[]],
): T {
  if (value === undefined) return choices[0]
  if (choices.includes(value)) return value
  throw bad(`${option} cannot be ${show(value)}.`, `Use one of: ${choices.join(', ')}.`)
}

function bad(message: string, hint: string): HoldfastError {
  return new HoldfastError('HF_BAD_SCHEDULE', message, { hint })
}
