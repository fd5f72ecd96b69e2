/** The options of holdfast(): one documented type, one reader that rejects what cannot work. */
import { HoldfastError } from '../errors.ts'
import { DEFAULT_TIMEOUT_MS } from '../job/definition.ts'
import { readDuration } from '../job/duration.ts'
import type { QueueRules } from '../job/new-job.ts'
import { readWhole } from '../job/numbers.ts'
import { DEFAULT_AGING_MS, readAgingMs, type Aging } from '../job/rank.ts'
import { DEFAULT_RETRY, type ResolvedRetry } from '../job/retry.ts'
import type { Duration } from '../std/duration.ts'
import { MAX_ATTEMPT_RECORDS, type Retention, type Store } from '../stores/store.ts'
import { readEnvironment, type Environment } from './environment.ts'

export interface QueueConfig {
  /** Waiting time that one priority level is worth. @default '1m' */
  readonly aging?: Aging
  /** False deletes jobs that fail for good. @default true */
  readonly deadLetters?: boolean
}

/** How long, and how many, finished jobs are kept. */
export interface KeepOptions {
  /** @default '1d' */
  readonly completed?: Duration
  /** @default '30d' */
  readonly dead?: Duration
  /** @default '1d' */
  readonly cancelled?: Duration
  /** Maximum number of completed jobs to keep. @default no limit except the time */
  readonly maxCompleted?: number
  /** Maximum number of dead letters to keep. @default no limit except the time */
  readonly maxDead?: number
  /** Maximum number of cancelled jobs to keep. @default no limit except the time */
  readonly maxCancelled?: number
  /** Number of attempts recorded per job: the newest ones, at most 100. @default 20 */
  readonly attempts?: number
}

export interface ClientOptions<Queues extends Record<string, QueueConfig>> {
  /**
   * `file:.holdfast` (embedded, in that directory), `postgres://…`, `memory:`, or your own store. @default
   * HOLDFAST_STORE, otherwise 'file:.holdfast'
   */
  readonly store?: 'memory:' | `file:${string}` | `postgres${'' | 'ql'}://${string}` | (string & {}) | Store
  /** The queues that jobs may go to. @default { default: {} } */
  readonly queues?: Queues
  readonly keep?: KeepOptions
  /** Deadline of an enqueue or any other call to the store, retries included; at most 5m. @default '10s' */
  readonly timeout?: Duration
}

export interface HoldfastSettings {
  readonly env: Environment
  readonly store: string | Store
  readonly queues: QueueRules
  readonly retention: Retention
  /** Number of attempts recorded per job. */
  readonly keepAttempts: number
  readonly retry: ResolvedRetry
  readonly jobTimeoutMs: number
  readonly timeoutMs: number
}

const DAY_MS = 86_400_000
/** A store remembers flush ids for ten minutes: repeats must have ended by then. */
const LONGEST_TIMEOUT_MS = 300_000
const FIELDS: ReadonlySet<string> = new Set(['store', 'queues', 'keep', 'timeout', 'health', 'logger'])
const KEEP_FIELDS: ReadonlySet<string> = new Set([
  'completed',
  'dead',
  'cancelled',
  'maxCompleted',
  'maxDead',
  'maxCancelled',
  'attempts',
])
const DEFAULT_ATTEMPTS_KEPT = 20

export function readSettings(
  options: ClientOptions<Record<string, QueueConfig>>,
  env: Readonly<Record<string, string | undefined>>,
): HoldfastSettings {
  refuseUnknown(options, FIELDS, 'holdfast()')
  const environment = readEnvironment(env)
  const attempts = environment.maxRetries === undefined ? DEFAULT_RETRY.attempts : environment.maxRetries + 1
  return {
    env: environment,
    store: options.store ?? environment.store ?? 'file:.holdfast',
    queues: readQueues(options.queues ?? { default: {} }),
    retention: readKeep(options.keep ?? {}),
    keepAttempts: readWhole(
      options.keep?.attempts ?? DEFAULT_ATTEMPTS_KEPT,
      'keep.attempts',
      0,
      MAX_ATTEMPT_RECORDS,
    ),
    retry: Object.freeze({ ...DEFAULT_RETRY, attempts }),
    jobTimeoutMs: DEFAULT_TIMEOUT_MS,
    timeoutMs: readTimeout(options.timeout),
  }
}

const QUEUE_NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_.:/@-]{0,99}$/u

function readQueues(queues: Record<string, QueueConfig>): QueueRules {
  const aging = new Map<string, number>()
  const withoutDead = new Set<string>()
  for (const [name, config] of Object.entries(queues)) {
    if (!QUEUE_NAME.test(name)) {
      throw bad(
        `${JSON.stringify(name)} is not a queue name.`,
        'Use 1 to 100 letters, digits and _ . : / @ - without spaces.',
      )
    }
    refuseUnknown(config, new Set(['aging', 'deadLetters']), `queue "${name}"`)
    if (typeof (config.deadLetters ?? true) !== 'boolean')
      throw bad(`queues.${name}.deadLetters is not a boolean.`)
    if (config.deadLetters === false) withoutDead.add(name)
    aging.set(name, readAgingMs(config.aging, `queues.${name}.aging`))
  }
  if (aging.size === 0) throw bad('`queues` is empty.', 'Declare at least one queue, or leave `queues` out.')
  return {
    names: [...aging.keys()],
    agingMs: (queue) => aging.get(queue) ?? DEFAULT_AGING_MS,
    keepsDead: (queue) => !withoutDead.has(queue),
  }
}

function readKeep(keep: KeepOptions): Retention {
  refuseUnknown(keep, KEEP_FIELDS, 'keep')
  const age = (field: 'completed' | 'dead' | 'cancelled', fallbackMs: number): number =>
    keep[field] === undefined ? fallbackMs : readDuration(keep[field], `keep.${field}`, { orZero: true })
  const count = (field: 'maxCompleted' | 'maxDead' | 'maxCancelled'): number | null =>
    keep[field] === undefined ? null : readWhole(keep[field], `keep.${field}`, 0, Number.MAX_SAFE_INTEGER)
  return {
    completedMs: age('completed', DAY_MS),
    deadMs: age('dead', 30 * DAY_MS),
    cancelledMs: age('cancelled', DAY_MS),
    maxCompleted: count('maxCompleted'),
    maxDead: count('maxDead'),
    maxCancelled: count('maxCancelled'),
  }
}

function readTimeout(timeout: Duration | undefined): number {
  if (timeout === undefined) return 10_000
  const ms = readDuration(timeout, 'timeout')
  if (ms > LONGEST_TIMEOUT_MS) throw bad('timeout is longer than 5 minutes.')
  return ms
}

/** A misspelt option must not be an ignored one. */
export function refuseUnknown(options: object, fields: ReadonlySet<string>, where: string): void {
  if (typeof options !== 'object' || options === null) throw bad(`The options of ${where} must be an object.`)
  for (const field of Object.keys(options)) {
    if (!fields.has(field)) throw bad(`${where} has no option "${field}".`, `Use ${[...fields].join(', ')}.`)
  }
}

function bad(message: string, hint?: string): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', message, hint === undefined ? {} : { hint })
}
