/** The options of a worker: one documented type, one reader that rejects invalid values. */
import type { Core } from '../core/core.ts'
import { DEAD_LETTER_JOB } from '../job/dead-letter.ts'
import { ownerOf, type AnyJob } from '../core/job-mark.ts'
import { HoldfastError } from '../errors.ts'
import { readQueue, type JobDefinition } from '../job/definition.ts'
import { duration } from '../job/duration.ts'
import { readName } from '../job/name.ts'
import {
  list,
  options,
  positive,
  readersFor,
  readOptions,
  record,
  refused,
  signal,
  whole,
  type Reader,
} from '../job/options.ts'
import type { Duration } from '../std/duration.ts'
import { MAX_BATCH } from '../stores/store.ts'
import {
  THRESHOLD_FIELDS,
  thresholdsFrom,
  type HealthThresholds,
  type ResolvedThresholds,
} from './health-thresholds.ts'

export interface WorkOptions<Q extends string = string> {
  /** Its name in status and health; workers may share a name. @default 'worker' */
  readonly name?: string
  /**
   * The jobs that this worker runs. It claims whatever its queues hold: a job that is not listed fails there as unknown
   * and is retried over minutes, so put jobs that other workers run into their own queue. @default all that have a
   * handler
   */
  readonly jobs?: readonly AnyJob[]
  /** The queues it reads, as a list or with weights: { mail: 2, default: 1 }. @default all, equally */
  readonly queues?: readonly Q[] | Readonly<Partial<Record<Q, number>>>
  /** Number of jobs that run at once. @default WORKER_CONCURRENCY, otherwise 5 */
  readonly concurrency?: number
  /** Maximum number of jobs per claim. @default JOB_BATCH_SIZE, otherwise the number that it finishes in about 50 ms */
  readonly batchSize?: number
  /** How often to poll for jobs if no wake-up arrives. @default JOB_POLL_INTERVAL, otherwise '1s' */
  readonly poll?: Duration
  /** How long the worker keeps its jobs without a heartbeat. @default '30s' */
  readonly lease?: Duration
  /** How long stop() lets running jobs finish before it aborts them. @default '30s' */
  readonly grace?: Duration
  /** Health thresholds of this worker; missing ones are those of `health` in holdfast(). */
  readonly health?: HealthThresholds
  /** Aborting it stops the worker. */
  readonly signal?: AbortSignal
}

export interface WorkerSettings {
  readonly name: string
  readonly jobs: ReadonlyMap<string, JobDefinition>
  readonly weights: ReadonlyMap<string, number>
  readonly concurrency: number
  readonly batchSize: number
  readonly pollMs: number
  readonly leaseMs: number
  readonly graceMs: number
  readonly thresholds: Partial<ResolvedThresholds>
  /** A call to the store that takes longer has failed: well within the lease, so that a heartbeat can be retried. */
  readonly callTimeoutMs: number
}

export interface StopOptions {
  /** How long running jobs may finish. @default the worker's grace */
  readonly drain?: Duration
}

const FIELDS = readersFor<WorkOptions>()({
  name: readName,
  jobs: list(readJob),
  queues: readQueues,
  concurrency: whole(1, 10_000),
  batchSize: whole(1, MAX_BATCH),
  poll: duration(),
  // It must outlive a slow answer of the store.
  lease: duration({ minMs: 100 }),
  grace: duration({ orZero: true }),
  health: options(THRESHOLD_FIELDS),
  signal,
})

const STOP_FIELDS = readersFor<StopOptions>()({ drain: duration({ orZero: true }) })

export function readWorkOptions(core: Core, given: WorkOptions): WorkerSettings {
  const { env } = core.settings
  const read = readOptions(given, 'work()', FIELDS)
  const { name = 'worker', lease: leaseMs = 30_000, grace: graceMs = 30_000 } = read
  return {
    name,
    weights: weightsOf(core, read.queues),
    concurrency: read.concurrency ?? env.concurrency ?? 5,
    batchSize: read.batchSize ?? env.batchSize ?? MAX_BATCH,
    pollMs: read.poll ?? env.pollMs ?? 1_000,
    leaseMs,
    graceMs,
    thresholds: thresholdsFrom(read.health ?? {}),
    callTimeoutMs: Math.min(3_000, leaseMs / 3),
    // Last, so that all else is judged even where the jobs are defined later.
    jobs: jobsOf(core, read.jobs),
  }
}

/** In milliseconds. */
export function readStopOptions(given: StopOptions | undefined, path: string): { readonly drain?: number } {
  const { drain } = given === undefined ? {} : readOptions(given, path, STOP_FIELDS)
  return drain === undefined ? {} : { drain }
}

function readJob(value: unknown, path: string): AnyJob {
  if (typeof (Object(value) as Partial<AnyJob>).name === 'string') return value as AnyJob
  throw refused(path, value, 'a job of this holdfast()')
}

function jobsOf(core: Core, jobs: readonly AnyJob[] | undefined): Map<string, JobDefinition> {
  const runnable = core.registry.all().filter((job) => job.run !== undefined)
  const chosen = jobs?.map((job) => find(core, job)) ?? runnable
  if (chosen.length === 0) throw new HoldfastError('HF_NO_JOBS', 'This worker has no jobs to run.')
  // The dead-letter handler is not a job that users could list.
  const handler = runnable.filter(({ name }) => name === DEAD_LETTER_JOB)
  return new Map([...chosen, ...handler].map((definition) => [definition.name, definition]))
}

function find(core: Core, job: AnyJob): JobDefinition {
  const definition = core.registry.get(job.name)
  if (definition === undefined || ownerOf(job) !== core) {
    throw new HoldfastError('HF_UNKNOWN_JOB', `Job "${job.name}" belongs to another holdfast().`, {
      hint: 'Create the jobs and the worker from the same holdfast() object.',
    })
  }
  if (definition.run === undefined) {
    throw new HoldfastError(
      'HF_NO_HANDLER',
      `Job "${job.name}" is a contract without an implementation here.`,
    )
  }
  return definition
}

const WEIGHTS = record(positive)
const LIST: Reader<readonly unknown[]> = list((name) => name)

function readQueues(value: unknown, path: string): ReadonlyMap<unknown, number> {
  const weights = Array.isArray(value)
    ? new Map(LIST(value, path).map((name) => [name, 1]))
    : WEIGHTS(value, path)
  if (weights.size > 0) return weights
  throw new HoldfastError('HF_BAD_OPTION', `\`${path}\` is empty.`, {
    hint: 'Name at least one queue, or leave it out to read all of them.',
  })
}

function weightsOf({ queues }: Core, given: ReadonlyMap<unknown, number> | undefined): Map<string, number> {
  if (given === undefined) return new Map(queues.names.map((name) => [name, 1]))
  return new Map([...given].map(([name, weight]) => [readQueue(name, queues.names), weight]))
}
