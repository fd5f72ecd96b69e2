/**
 * The public API for jobs that failed for good: list, group by error, replay, discard, and a handler for new ones (see
 * `maintenance/dead-letters.ts`). Dead letters are plain jobs in the state `dead`.
 */
import { HoldfastError } from '../errors.ts'
import type { RunContext } from '../job/context.ts'
import { readInstant, type Instant } from '../job/duration.ts'
import type { AttemptError } from '../job/failure.ts'
import type { JobId } from '../job/ids.ts'
import type { NewJobOptions } from '../job/new-job.ts'
import { readWhole } from '../job/numbers.ts'
import { encodePayload, parseInput } from '../job/payload.ts'
import type { AttemptRecord, DeadJob, JobLogLine, JobRecord } from '../job/record.ts'
import { asError } from '../std/clock.ts'
import { mergeGroups } from '../stores/dead-groups.ts'
import {
  MAX_BATCH,
  MAX_SCAN,
  type DeadGroupPage,
  type JobFilter,
  type JobPage,
  type ListQuery,
} from '../stores/store.ts'

import type { Core } from '../core/core.ts'
import type { Changed } from '../core/store-client.ts'
import { DEAD_LETTER_JOB } from '../job/dead-letter.ts'
import { refuseUnknown } from '../core/settings.ts'

/** A filter: selects the dead letters that match all given fields. */
export interface DeadLetterFilter {
  readonly ids?: readonly string[]
  readonly queues?: readonly string[]
  /** Job names. */
  readonly jobs?: readonly string[]
  /** Fingerprints of their last errors, as returned by groups(). */
  readonly fingerprints?: readonly string[]
  /** Failed at this time or later … */
  readonly since?: Instant
  /** … and before this time. */
  readonly until?: Instant
  /** Enqueued at this time or later … */
  readonly enqueuedSince?: Instant
  /** … and before this time. */
  readonly enqueuedUntil?: Instant
  /** Carry at least one of these tags. */
  readonly tags?: readonly string[]
  /** Their id begins with this string. */
  readonly idPrefix?: string
}

/** For replay() and discard(): a non-empty filter, or explicitly all. */
export type DeadLetterChoice = DeadLetterFilter | { readonly all: true }

/** Everything about a job that failed for good. */
export interface DeadLetter {
  readonly id: string
  readonly job: string
  readonly queue: string
  readonly input: unknown
  readonly enqueuedAt: Date
  readonly failedAt: Date
  /** Its last error, with class, stack and fingerprint. */
  readonly error: AttemptError
  /** Every recorded attempt, oldest first. */
  readonly attempts: readonly AttemptRecord[]
  readonly tags: readonly string[]
  readonly correlationId: string
  readonly log: readonly JobLogLine[]
}

/** Dead letters of one job in one queue with the same fingerprint. */
export interface DeadLetterGroup {
  readonly queue: string
  readonly job: string
  readonly fingerprint: string
  readonly count: number
  readonly firstAt: Date
  readonly lastAt: Date
  /** The newest letter and its error. */
  readonly newest: string
  readonly kind: AttemptError['kind']
  readonly message: string
}

export interface BulkProgress {
  /**
   * Number of dead letters changed so far. If the store's reply to a step was lost, letters selected by id are counted
   * by their current state; of others, only those that the repeated step changed are counted.
   */
  readonly changed: number
  /**
   * Number of letters left unchanged: another job holds their unique key, or they were replayed or discarded meanwhile.
   */
  readonly skipped: number
  /** Cursor for continuing an interrupted run: `{ from }`. Null at the end. */
  readonly cursor: string | null
}

export interface BulkOptions {
  readonly onProgress?: (progress: BulkProgress) => void
  /** Stops after the current step, with the signal's reason. */
  readonly signal?: AbortSignal
  /** The cursor of an interrupted run. */
  readonly from?: string
}

export interface ReplayOptions extends BulkOptions {
  /**
   * The input to replay with, or a function that makes it from each letter. The job's schema validates it. @default the
   * old input
   */
  readonly input?: unknown
}

export interface HandlerOptions<Q extends string = string> extends Pick<
  NewJobOptions<Q>,
  'queue' | 'retry' | 'timeout' | 'priority'
> {}

/** `hf.deadLetters` */
export interface DeadLetters<Q extends string = string> {
  get(id: string): Promise<DeadLetter | null>
  /**
   * Newest job first, a page at a time. A filter that matches few of very many letters may return a short or empty page
   * with a `next`: continue from there. @default limit 100
   */
  list(
    options?: DeadLetterFilter & { readonly limit?: number; readonly after?: string },
  ): Promise<{ readonly letters: readonly DeadLetter[]; readonly next: string | null }>
  /** Groups letters with the same fingerprint, the largest group first. */
  groups(filter?: DeadLetterFilter): Promise<readonly DeadLetterGroup[]>
  /** Replays one letter by its id, or all that match the filter, with all their attempts. */
  replay(which: string | DeadLetterChoice, options?: ReplayOptions): Promise<BulkProgress>
  /** Deletes them. */
  discard(which: string | DeadLetterChoice, options?: BulkOptions): Promise<BulkProgress>
  /**
   * Handles each new dead letter, at least once, on one worker of the fleet. The handler is a job, so it is retried
   * like one. One per holdfast(); define it where you define your jobs.
   */
  handle(
    run: (letter: DeadLetter, context: RunContext<unknown, object>) => unknown,
    options?: HandlerOptions<Q>,
  ): void
}

type DefineJob = (definition: object) => void

const FILTER_FIELDS = [
  'ids',
  'queues',
  'jobs',
  'fingerprints',
  'since',
  'until',
  'enqueuedSince',
  'enqueuedUntil',
  'tags',
  'idPrefix',
] as const
const MAPPED_AT_ONCE = 100

export function deadLetters(core: Core, define: DefineJob): DeadLetters {
  const get = (id: string): Promise<DeadLetter | null> => readLetter(core, id)
  return {
    get,
    async list({ limit = 100, after, ...filter } = {}) {
      const query = {
        ...readFilter(filter),
        limit: readWhole(limit, 'limit', 1, MAX_BATCH),
        after: (after ?? null) as JobId | null,
      }
      const { jobs, next } = await listPage(core, query)
      return { letters: jobs.map((job) => letterOf(job as DeadJob)), next }
    },
    groups: (filter = {}) => groupsOf(core, readFilter(filter)),
    async replay(which, { input, ...options } = {}) {
      const filter = readChoice(which)
      if (input === undefined) return stepByStep((after) => core.store.replay(filter, after), options)
      return replayWith(core, filter, input, options)
    },
    async discard(which, options = {}) {
      const filter = readChoice(which)
      return stepByStep((after) => core.store.discard(filter, after), options)
    },
    handle(run, options = {}) {
      if (typeof run !== 'function') throw bad('The handler of dead letters is not a function.')
      refuseUnknown(options, new Set(['queue', 'retry', 'timeout', 'priority']), 'deadLetters.handle()')
      define({
        ...options,
        name: DEAD_LETTER_JOB,
        run: async (context: RunContext<{ id: string; failedAt: number }, object>) => {
          const letter = await get(context.input.id)
          // Replayed or discarded meanwhile: it is settled, or will be a new dead letter if it fails again.
          if (letter === null || letter.failedAt.getTime() !== context.input.failedAt) return
          await run(letter, context)
        },
      })
    },
  }
}

// ── reading ──────────────────────────────────────────────────────────────────

async function readLetter(core: Core, id: string): Promise<DeadLetter | null> {
  const record = await core.store.job(id as JobId)
  return record?.state === 'dead' ? letterOf(record) : null
}

function letterOf(job: DeadJob): DeadLetter {
  const { id, name, queue, payload, createdAt, finishedAt, error, attempts, envelope, log } = job
  return {
    id,
    job: name,
    queue,
    input: JSON.parse(payload) as unknown,
    enqueuedAt: new Date(createdAt),
    failedAt: new Date(finishedAt),
    error,
    attempts,
    tags: envelope.tags,
    correlationId: envelope.correlationId ?? id,
    log,
  }
}

/** Asks the store until the page is full, there are no more jobs, or MAX_SCAN of them were scanned. */
async function listPage(core: Core, query: ListQuery): Promise<Pick<JobPage, 'jobs' | 'next'>> {
  const jobs: JobRecord[] = []
  let looked = 0
  let { after } = query
  do {
    const limit = query.limit - jobs.length
    const page = await core.store.jobs({ ...query, limit, after })
    jobs.push(...page.jobs)
    looked += page.looked
    after = page.next
  } while (after !== null && jobs.length < query.limit && looked < MAX_SCAN)
  return { jobs, next: after }
}

async function groupsOf(core: Core, filter: JobFilter): Promise<DeadLetterGroup[]> {
  let groups: ReturnType<typeof mergeGroups> = []
  let after: JobId | null = null
  do {
    const page: DeadGroupPage = await core.store.deadGroups(filter, after)
    groups = mergeGroups([...groups, ...page.groups])
    after = page.next
  } while (after !== null)
  return groups.map(({ name, firstAt, lastAt, ...group }) => ({
    ...group,
    job: name,
    firstAt: new Date(firstAt),
    lastAt: new Date(lastAt),
  }))
}

// ── changing ─────────────────────────────────────────────────────────────────

/** One at a time, because each has its own input, in the order of the list: newest first. */
async function replayWith(
  core: Core,
  filter: JobFilter,
  input: unknown,
  options: BulkOptions,
): Promise<BulkProgress> {
  const make = typeof input === 'function' ? (input as (letter: DeadLetter) => unknown) : (): unknown => input
  const step = async (after: JobId | null): Promise<Changed> => {
    const page = await core.store.jobs({ ...filter, limit: MAPPED_AT_ONCE, after })
    let changed = 0
    for (const job of page.jobs) {
      const payload = await newPayload(core, job.name, await make(letterOf(job as DeadJob)))
      if (await core.store.replayWith(job.id, payload)) changed++
    }
    return { changed, skipped: page.jobs.length - changed, next: page.next }
  }
  return stepByStep(step, options)
}

/** As at an enqueue: validated by the job's schema, if this process has it. */
async function newPayload(core: Core, name: string, input: unknown): Promise<string> {
  await parseInput(core.definition(name)?.schema, input, name)
  return encodePayload(input, name)
}

async function stepByStep(
  step: (after: JobId | null) => Promise<Changed>,
  { onProgress, signal, from }: BulkOptions,
): Promise<BulkProgress> {
  let progress: BulkProgress = { changed: 0, skipped: 0, cursor: from ?? null }
  do {
    if (signal?.aborted) throw asError(signal.reason)
    const answer = await step(progress.cursor as JobId | null)
    progress = {
      changed: progress.changed + answer.changed,
      skipped: progress.skipped + answer.skipped,
      cursor: answer.next,
    }
    onProgress?.(progress)
  } while (progress.cursor !== null)
  return progress
}

// ── filters ──────────────────────────────────────────────────────────────────

function readChoice(which: unknown): JobFilter {
  if (typeof which === 'string') return { ids: [which as JobId], states: ['dead'] }
  if (typeof which !== 'object' || which === null)
    throw badFilter('A filter of dead letters must be an object.')
  if ('all' in which) {
    if (which.all !== true || Object.keys(which).length > 1)
      throw badFilter('`all` stands alone, and is true.')
    return { states: ['dead'] }
  }
  const filter = readFilter(which)
  if (Object.keys(filter).length === 1) throw badFilter('The filter of dead letters is empty.')
  return filter
}

function readFilter(given: DeadLetterFilter): JobFilter {
  for (const field of Object.keys(given)) {
    if (!(FILTER_FIELDS as readonly string[]).includes(field))
      throw badFilter(`A filter of dead letters has no "${field}".`, `Use ${FILTER_FIELDS.join(', ')}.`)
  }
  const { ids, queues, jobs, fingerprints, since, until, enqueuedSince, enqueuedUntil, tags, idPrefix } =
    given
  return {
    states: ['dead'],
    ...(ids !== undefined && { ids: readTexts(ids, 'ids') as readonly JobId[] }),
    ...(queues !== undefined && { queues: readTexts(queues, 'queues') }),
    ...(jobs !== undefined && { names: readTexts(jobs, 'jobs') }),
    ...(fingerprints !== undefined && { fingerprints: readTexts(fingerprints, 'fingerprints') }),
    ...(since !== undefined && { finishedFrom: readInstant(since, 'since') }),
    ...(until !== undefined && { finishedBefore: readInstant(until, 'until') }),
    ...(enqueuedSince !== undefined && { createdFrom: readInstant(enqueuedSince, 'enqueuedSince') }),
    ...(enqueuedUntil !== undefined && { createdBefore: readInstant(enqueuedUntil, 'enqueuedUntil') }),
    ...(tags !== undefined && { tags: readTexts(tags, 'tags') }),
    ...(idPrefix !== undefined && { idPrefix: readPrefix(idPrefix) }),
  }
}

function readTexts(value: unknown, field: string): readonly string[] {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value
  throw badFilter(`\`${field}\` of a filter of dead letters must be a list of strings.`)
}

function readPrefix(value: unknown): string {
  if (typeof value === 'string' && /^[0-9a-f-]{1,36}$/.test(value)) return value
  throw badFilter('`idPrefix` of a filter of dead letters must be the beginning of an id.')
}

function badFilter(message: string, hint?: string): HoldfastError {
  return new HoldfastError('HF_BAD_FILTER', message, hint === undefined ? {} : { hint })
}

function bad(message: string): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', message)
}
