/** The options of holdfast(): one documented type, one reader that rejects what cannot work. */
import { HoldfastError } from '../errors.ts'
import { DEFAULT_TIMEOUT_MS } from '../job/definition.ts'
import { duration } from '../job/duration.ts'
import type { QueueRules } from '../job/new-job.ts'
import { asGiven, boolean, options, readersFor, record, whole } from '../job/options.ts'
import type { Read, Reader } from '../job/options.ts'
import { DEFAULT_AGING_MS, readAgingMs, type Aging } from '../job/rank.ts'
import { DEFAULT_RETRY, type ResolvedRetry } from '../job/retry.ts'
import { show } from '../job/show.ts'
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
   * `file:.holdfast` (embedded, in that directory), `postgres://…`, `redis://…`, `memory:`, or a store of your own.
   * @default HOLDFAST_STORE, else 'file:.holdfast'
   */
  readonly store?:
    | 'memory:'
    | `file:${string}`
    | `postgres${'' | 'ql'}://${string}`
    | `redis${'' | 's'}${'' | '-cluster'}://${string}`
    | (string & {})
    | Store
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
const DEFAULT_ATTEMPTS_KEPT = 20
const QUEUE_NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_.:/@-]{0,99}$/u

const AGE = duration({ orZero: true })
const COUNT = whole(0)
const QUEUE_FIELDS = readersFor<QueueConfig>()({ aging: readAgingMs, deadLetters: boolean })
const KEEP_FIELDS = readersFor<KeepOptions>()({
  completed: AGE,
  dead: AGE,
  cancelled: AGE,
  maxCompleted: COUNT,
  maxDead: COUNT,
  maxCancelled: COUNT,
  attempts: whole(0, MAX_ATTEMPT_RECORDS),
})

/** Those of a client; `holdfast()` has more. */
export const CLIENT_FIELDS = readersFor<ClientOptions<Record<string, QueueConfig>>>()({
  // Judged by what opens it.
  store: asGiven as Reader<string | Store>,
  queues: readQueues,
  keep: options(KEEP_FIELDS),
  timeout: duration({ maxMs: LONGEST_TIMEOUT_MS }),
})

/** From options that were read by `CLIENT_FIELDS`, and the environment. */
export function settingsFrom(
  { store, queues = DEFAULT_QUEUES, keep = {}, timeout = 10_000 }: Read<typeof CLIENT_FIELDS>,
  env: Readonly<Record<string, string | undefined>>,
): HoldfastSettings {
  const environment = readEnvironment(env)
  const attempts = environment.maxRetries === undefined ? DEFAULT_RETRY.attempts : environment.maxRetries + 1
  return {
    env: environment,
    store: store ?? environment.store ?? 'file:.holdfast',
    queues,
    retention: {
      completedMs: keep.completed ?? DAY_MS,
      deadMs: keep.dead ?? 30 * DAY_MS,
      cancelledMs: keep.cancelled ?? DAY_MS,
      maxCompleted: keep.maxCompleted ?? null,
      maxDead: keep.maxDead ?? null,
      maxCancelled: keep.maxCancelled ?? null,
    },
    keepAttempts: keep.attempts ?? DEFAULT_ATTEMPTS_KEPT,
    retry: Object.freeze({ ...DEFAULT_RETRY, attempts }),
    jobTimeoutMs: DEFAULT_TIMEOUT_MS,
    timeoutMs: timeout,
  }
}

const READ_QUEUES = record(options(QUEUE_FIELDS))
const DEFAULT_QUEUES = readQueues({ default: {} }, 'holdfast().queues')

function readQueues(given: unknown, path: string): QueueRules {
  const queues = READ_QUEUES(given, path)
  for (const name of queues.keys()) {
    if (QUEUE_NAME.test(name)) continue
    throw new HoldfastError('HF_BAD_OPTION', `${show(name)} is not a queue name.`, {
      hint: 'Use 1 to 100 letters, digits and _ . : / @ - without spaces.',
    })
  }
  if (queues.size === 0)
    throw new HoldfastError('HF_BAD_OPTION', `\`${path}\` is empty.`, {
      hint: 'Declare at least one queue, or leave `queues` out.',
    })
  return {
    names: [...queues.keys()],
    agingMs: (queue) => queues.get(queue)?.aging ?? DEFAULT_AGING_MS,
    keepsDead: (queue) => queues.get(queue)?.deadLetters !== false,
  }
}
