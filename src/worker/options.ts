/** The options of a worker: one documented type, one reader that rejects invalid values. */
import type { Core } from '../core/core.ts'
import { DEAD_LETTER_JOB } from '../job/dead-letter.ts'
import { ownerOf, type AnyJob } from '../core/job-mark.ts'
import { refuseUnknown } from '../core/settings.ts'
import { HoldfastError } from '../errors.ts'
import { readQueue, type JobDefinition } from '../job/definition.ts'
import { readDuration } from '../job/duration.ts'
import { readName } from '../job/name.ts'
import { readWhole } from '../job/numbers.ts'
import type { Duration } from '../std/duration.ts'
import { MAX_BATCH } from '../stores/store.ts'
import { readThresholds, type HealthThresholds, type ResolvedThresholds } from './health-thresholds.ts'

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

const FIELDS: ReadonlySet<string> = new Set([
  'name',
  'jobs',
  'queues',
  'concurrency',
  'batchSize',
  'poll',
  'lease',
  'grace',
  'health',
  'signal',
])
const SHORTEST_LEASE_MS = 100

export function readWorkOptions(core: Core, options: WorkOptions): WorkerSettings {
  refuseUnknown(options, FIELDS, 'work()')
  const { env } = core.settings
  const leaseMs = options.lease === undefined ? 30_000 : readDuration(options.lease, 'lease')
  if (leaseMs < SHORTEST_LEASE_MS) {
    throw new HoldfastError(
      'HF_BAD_OPTION',
      `lease is ${leaseMs} ms, shorter than ${SHORTEST_LEASE_MS} ms.`,
      {
        hint: 'Use a lease of some seconds: it must outlast a slow answer of the store.',
      },
    )
  }
  return {
    name: readName(options.name ?? 'worker', 'worker'),
    weights: readWeights(core, options.queues),
    concurrency: readWhole(options.concurrency ?? env.concurrency ?? 5, 'concurrency', 1, 10_000),
    batchSize: readWhole(options.batchSize ?? env.batchSize ?? MAX_BATCH, 'batchSize', 1, MAX_BATCH),
    pollMs: options.poll === undefined ? (env.pollMs ?? 1_000) : readDuration(options.poll, 'poll'),
    leaseMs,
    graceMs: options.grace === undefined ? 30_000 : readDuration(options.grace, 'grace', { orZero: true }),
    thresholds: readThresholds(options.health ?? {}, 'health'),
    callTimeoutMs: Math.min(3_000, leaseMs / 3),
    // Last, so that everything else is validated even if the jobs are defined later.
    jobs: readJobs(core, options.jobs),
  }
}

function readJobs(core: Core, jobs: readonly AnyJob[] | undefined): Map<string, JobDefinition> {
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

function readWeights(core: Core, queues: WorkOptions['queues']): Map<string, number> {
  const entries: [string, unknown][] =
    queues === undefined
      ? core.queues.names.map((name) => [name, 1])
      : isList(queues)
        ? queues.map((name) => [name, 1])
        : Object.entries(queues)
  if (entries.length === 0) {
    throw new HoldfastError('HF_BAD_OPTION', '`queues` of work() is empty.', {
      hint: 'Name at least one queue, or leave it out to read all of them.',
    })
  }
  return new Map(
    entries.map(([name, weight]) => {
      if (typeof weight !== 'number' || !(weight > 0) || !Number.isFinite(weight)) {
        throw new HoldfastError('HF_BAD_OPTION', `The weight of queue "${name}" is ${String(weight)}.`, {
          hint: 'Use a number above zero; a queue that shall not be read is left out.',
        })
      }
      return [readQueue(name, core.queues.names), weight]
    }),
  )
}

function isList(queues: NonNullable<WorkOptions['queues']>): queues is readonly string[] {
  return Array.isArray(queues)
}
