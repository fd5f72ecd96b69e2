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
import {
  asGiven,
  fn,
  list,
  readersFor,
  readOptions,
  refused,
  refuseUnknown,
  signal,
  under,
  whole,
} from '../job/options.ts'
import type { Read, Reader } from '../job/options.ts'
import { encodePayload, parseInput } from '../job/payload.ts'
import type { AttemptRecord, DeadJob, JobLogLine, JobRecord } from '../job/record.ts'
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
import { toError } from '../std/text.ts'

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

export interface ListOptions extends DeadLetterFilter {
  /** Maximum number of letters in a page, up to 1,000. @default 100 */
  readonly limit?: number
  /** `next` of the page before. */
  readonly after?: string
}

export interface HandlerOptions<Q extends string = string> extends Pick<
  NewJobOptions<Q>,
  'queue' | 'retry' | 'timeout' | 'priority'
> {}

/** `hf.deadLetters` */
export interface DeadLetters<Q extends string = string> {
  get(id: string): Promise<DeadLetter | null>
  /**
   * Newest job first, a page at a time. A filter that matches few of very many letters may give a short page, or an empty
   * one, with a `next`: continue from there.
   */
  list(
    options?: ListOptions,
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

type DefineJob = (definition: object, path: string) => void

const BAD = 'HF_BAD_FILTER'
const TEXTS: Reader<readonly string[]> = under(BAD, list(readText))
const FILTER = readersFor<DeadLetterFilter>()({
  ids: TEXTS,
  queues: TEXTS,
  jobs: TEXTS,
  fingerprints: TEXTS,
  since: readInstant,
  until: readInstant,
  enqueuedSince: readInstant,
  enqueuedUntil: readInstant,
  tags: TEXTS,
  idPrefix: under(BAD, readPrefix),
})
/** Which cursors there are is known to the store. */
const CURSOR = asGiven as Reader<JobId | null>
const LIST = readersFor<ListOptions>()({ ...FILTER, limit: whole(1, MAX_BATCH), after: CURSOR })
const BULK = readersFor<BulkOptions>()({
  onProgress: fn<NonNullable<BulkOptions['onProgress']>>(),
  signal,
  from: CURSOR,
})
const REPLAY = readersFor<ReplayOptions>()({ ...BULK, input: asGiven })
/** Judged with the job that it becomes. */
const HANDLE = readersFor<HandlerOptions>()({
  queue: asGiven,
  retry: asGiven,
  timeout: asGiven,
  priority: asGiven,
})
type Bulk = Read<typeof BULK>

const MAPPED_AT_ONCE = 100

export function deadLetters(core: Core, define: DefineJob): DeadLetters {
  const get = (id: string): Promise<DeadLetter | null> => readLetter(core, id)
  return {
    get,
    async list(options = {}) {
      const { limit = 100, after = null, ...filter } = readOptions(options, 'deadLetters.list()', LIST, BAD)
      const { jobs, next } = await listPage(core, { ...filterOf(filter), limit, after })
      return { letters: jobs.map((job) => letterOf(job as DeadJob)), next }
    },
    async groups(filter = {}) {
      return groupsOf(core, filterOf(readOptions(filter, 'deadLetters.groups()', FILTER, BAD)))
    },
    async replay(which, given = {}) {
      const filter = readChoice(which, 'deadLetters.replay(filter)')
      const { input, ...options } = readOptions(given, 'deadLetters.replay()', REPLAY)
      if (input === undefined) return stepByStep((after) => core.store.replay(filter, after), options)
      return replayWith(core, filter, input, options)
    },
    async discard(which, given = {}) {
      const filter = readChoice(which, 'deadLetters.discard(filter)')
      const options = readOptions(given, 'deadLetters.discard()', BULK)
      return stepByStep((after) => core.store.discard(filter, after), options)
    },
    handle(run, options = {}) {
      if (typeof run !== 'function') throw refused('deadLetters.handle(run)', run, 'a function')
      refuseUnknown(options, 'deadLetters.handle()', HANDLE)
      const definition = {
        ...options,
        name: DEAD_LETTER_JOB,
        run: async (context: RunContext<{ id: string; failedAt: number }, object>) => {
          const letter = await get(context.input.id)
          // Replayed or discarded meanwhile: it is settled, or will be a new dead letter if it fails again.
          if (letter === null || letter.failedAt.getTime() !== context.input.failedAt) return
          await run(letter, context)
        },
      }
      define(definition, 'deadLetters.handle()')
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
  options: Bulk,
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
  { onProgress, signal, from = null }: Bulk,
): Promise<BulkProgress> {
  let progress: BulkProgress = { changed: 0, skipped: 0, cursor: from }
  do {
    if (signal?.aborted) throw toError(signal.reason)
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

function readChoice(which: unknown, path: string): JobFilter {
  if (typeof which === 'string') return { ids: [which as JobId], states: ['dead'] }
  if (typeof which === 'object' && which !== null && 'all' in which) {
    if (which.all !== true || Object.keys(which).length > 1)
      throw badFilter('`all` stands alone, and is true.')
    return { states: ['dead'] }
  }
  const filter = filterOf(readOptions(which, path, FILTER, BAD))
  if (Object.keys(filter).length === 1) throw badFilter('The filter of dead letters is empty.')
  return filter
}

function filterOf({
  ids,
  queues,
  jobs,
  fingerprints,
  tags,
  idPrefix,
  ...times
}: Read<typeof FILTER>): JobFilter {
  const { since, until, enqueuedSince, enqueuedUntil } = times
  return {
    states: ['dead'],
    ...(ids !== undefined && { ids: ids as readonly JobId[] }),
    ...(queues !== undefined && { queues }),
    ...(jobs !== undefined && { names: jobs }),
    ...(fingerprints !== undefined && { fingerprints }),
    ...(since !== undefined && { finishedFrom: since }),
    ...(until !== undefined && { finishedBefore: until }),
    ...(enqueuedSince !== undefined && { createdFrom: enqueuedSince }),
    ...(enqueuedUntil !== undefined && { createdBefore: enqueuedUntil }),
    ...(tags !== undefined && { tags }),
    ...(idPrefix !== undefined && { idPrefix }),
  }
}

function readText(value: unknown, path: string): string {
  if (typeof value === 'string') return value
  throw refused(path, value, 'a text')
}

function readPrefix(value: unknown, path: string): string {
  if (typeof value === 'string' && /^[0-9a-f-]{1,36}$/.test(value)) return value
  throw refused(path, value, 'the beginning of an id')
}

function badFilter(message: string): HoldfastError {
  return new HoldfastError(BAD, message)
}
