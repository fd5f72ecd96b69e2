/** Everything that is decided about a job before it is written: a pure function of definition, input and options. */
import { HoldfastError } from '../errors.ts'
import type { Duration } from '../std/duration.ts'
import { encodeStrict, JsonRejected } from '../std/json.ts'
import { duration, readInstant, type Instant } from './duration.ts'
import { readQueue, type JobDefinition } from './definition.ts'
import type { JobId } from './ids.ts'
import { asGiven, list, locate, readersFor, refused, refuseUnknown, string, type Located } from './options.ts'
import { headStartMs, readPriority, type Priority } from './rank.ts'
import type { Due, Envelope, NewJob } from './record.ts'
import { DEFAULT_RETRY, resolveRetry, RETRY_FIELDS, type RetryOptions } from './retry.ts'
import { readUnique, RETURNED_UNIQUE, uniquePaths, type Unique, type UniquePaths } from './unique.ts'

export interface NewJobOptions<Q extends string = string> {
  /** @default the job's queue */
  readonly queue?: Q
  /** @default the job's priority */
  readonly priority?: Priority
  /** Runs after this long; not together with `at`. */
  readonly in?: Duration
  /** Runs at this time; not together with `in`. */
  readonly at?: Instant
  /** @default what the job's `unique` says */
  readonly unique?: Unique
  readonly tags?: readonly string[]
  /** Overrides parts of the job's policy for this one. */
  readonly retry?: RetryOptions
  /** @default the job's timeout */
  readonly timeout?: Duration
  /** Cancel the job if an attempt has not started this long after the job was due, retries included. @default never */
  readonly expiresIn?: Duration
  /** @default that of the enqueuing handler's job, or the new job's own id */
  readonly correlationId?: string
  /** Short strings that travel with the job, merged over those of the enqueuing handler's job. */
  readonly metadata?: Readonly<Record<string, string>>
}

const METADATA_LIMITS = { maxBytes: 8 * 1024, maxDepth: 1 }
const METADATA_TEXT = string(4_000)

const FIELDS = readersFor<NewJobOptions>()({
  // Judged with the job, which knows the queues.
  queue: asGiven,
  priority: readPriority,
  in: duration({ orZero: true }),
  at: readInstant,
  // Judged with the job, whose name is a part of the key.
  unique: asGiven,
  tags: list(string(200), 50),
  retry: readRetry,
  timeout: duration(),
  expiresIn: duration(),
  correlationId: string(200),
  metadata: readMetadata,
})

const { in: _in, at: _at, unique: _unique, ...scheduled } = FIELDS
/** For the same options in other places. */
export const NEW_JOB_FIELDS = FIELDS
export const SCHEDULED_FIELDS = scheduled
export const ENVELOPE_FIELDS = {
  tags: FIELDS.tags,
  correlationId: FIELDS.correlationId,
  metadata: readMetadata,
}

type Paths = Located<typeof FIELDS>['of']
/** Paths of the same options where events are published. */
export const PUBLISH = locate('publish()', FIELDS).of

/** Where the options of an enqueue stand. Made once, since options are read for each job. */
export interface EnqueuePaths extends Located<typeof FIELDS> {
  readonly retry: Located<typeof RETRY_FIELDS>
  readonly unique: UniquePaths
  /** Options that are taken out before the others come here. */
  readonly also: readonly string[]
}

export function enqueuePaths(path: string, also: readonly string[]): EnqueuePaths {
  const own = locate(path, FIELDS)
  const { retry, unique } = own.of
  return { ...own, retry: locate(retry, RETRY_FIELDS), unique: uniquePaths(unique), also }
}

const ENQUEUE = enqueuePaths('enqueue()', ['tx'])

/** No options: the parts of such a job are read once per definition. */
export const NO_OPTIONS: NewJobOptions = Object.freeze({})

/** A job to be enqueued. */
export interface EnqueueItem {
  readonly definition: JobDefinition
  readonly input: unknown
  readonly options: NewJobOptions
  /** What the options were passed to. @default enqueue() */
  readonly at?: EnqueuePaths
}

/** What a job enqueued by a handler inherits from the handler's job. */
export interface Inherited {
  readonly correlationId: string
  readonly metadata: Readonly<Record<string, string>>
}

export interface QueueRules {
  readonly names: readonly string[]
  /** Whether its dead letters are kept. */
  keepsDead(queue: string): boolean
  agingMs(queue: string): number
}

const NO_TAGS: readonly string[] = Object.freeze([])
const NO_LIMITS: readonly string[] = Object.freeze([])
const NO_METADATA: Readonly<Record<string, string>> = Object.freeze({})
const PLAIN_ENVELOPE: Envelope = Object.freeze({
  correlationId: null,
  tags: NO_TAGS,
  metadata: NO_METADATA,
  retry: null,
  timeoutMs: null,
})
const NOW: Due = Object.freeze({ inMs: 0 })

/** What determines all parts of a job except its id and input. */
export interface TemplateParts {
  readonly definition: JobDefinition
  readonly options: NewJobOptions
  readonly at?: EnqueuePaths | undefined
  readonly queues: QueueRules
  readonly inherited: Inherited | undefined
}

/** All parts of a job except its id and input: read once, however many jobs are made from it. */
export interface JobTemplate extends Omit<NewJob, 'id' | 'payload' | 'unique'> {
  readonly unique: Unique | undefined
  /** Derives the key of a job if `unique` has none. */
  readonly uniqueOf: ((input: unknown) => Unique) | undefined
  /** Where the key that it gets was given. */
  readonly uniqueAt: UniquePaths
}

export function readTemplate({
  definition,
  options,
  at = ENQUEUE,
  queues,
  inherited,
}: TemplateParts): JobTemplate {
  refuseUnknown(options, at.path, FIELDS, 'HF_BAD_OPTION', at.also)
  const queue = options.queue === undefined ? definition.queue : readQueue(options.queue, queues.names)
  const priority =
    options.priority === undefined ? definition.priority : readPriority(options.priority, at.of.priority)
  const retry = resolveRetry(options.retry, definition.retry, at.retry)
  const due = readDue(options, at.of)
  return {
    name: definition.name,
    queue,
    priority,
    headStartMs: headStartMs(priority, queues.agingMs(queue)),
    maxAttempts: retry.attempts,
    maxCrashes: retry.crashes,
    group: null,
    limits: NO_LIMITS,
    envelope: readEnvelope(options, due, inherited, at.of),
    due,
    unique: options.unique,
    uniqueOf: definition.unique,
    uniqueAt: options.unique === undefined ? RETURNED_UNIQUE : at.unique,
  }
}

/** The parts that differ from job to job. */
export interface JobParts {
  readonly id: JobId
  readonly input: unknown
  /** The input as JSON text. */
  readonly payload: string
}

/** Spelled out, not spread: this runs for each of millions of jobs. */
export function jobFrom(template: JobTemplate, { id, input, payload }: JobParts): NewJob {
  const { name, queue, priority, headStartMs, maxAttempts, maxCrashes, group, limits, envelope, due } =
    template
  const unique = template.unique ?? template.uniqueOf?.(input)
  return {
    id,
    name,
    queue,
    payload,
    priority,
    headStartMs,
    maxAttempts,
    maxCrashes,
    group,
    limits,
    envelope,
    due,
    unique: unique === undefined ? null : readUnique(name, unique, template.uniqueAt),
  }
}

export function newJob(parts: TemplateParts & JobParts): NewJob {
  return jobFrom(readTemplate(parts), parts)
}

export function readDue(options: Pick<NewJobOptions, 'in' | 'at'>, of: Pick<Paths, 'in' | 'at'>): Due {
  if (options.in !== undefined && options.at !== undefined)
    throw new HoldfastError('HF_BAD_OPTION', `\`${of.in}\` and \`${of.at}\` cannot both be given.`, {
      hint: 'Use `in` for a delay, or `at` for a point in time.',
    })
  if (options.in !== undefined) return { inMs: FIELDS.in(options.in, of.in) }
  if (options.at !== undefined) return { atMs: readInstant(options.at, of.at) }
  return NOW
}

export function readEnvelope(
  options: NewJobOptions,
  due: Due,
  inherited: Inherited | undefined,
  of: Paths,
): Envelope {
  const { tags, retry, timeout, expiresIn, correlationId, metadata } = options
  const given = retry !== undefined || timeout !== undefined || correlationId !== undefined
  const plain =
    !given &&
    expiresIn === undefined &&
    tags === undefined &&
    metadata === undefined &&
    inherited === undefined
  if (plain) return PLAIN_ENVELOPE
  return {
    correlationId:
      correlationId === undefined
        ? (inherited?.correlationId ?? null)
        : FIELDS.correlationId(correlationId, of.correlationId),
    tags: tags === undefined ? NO_TAGS : FIELDS.tags(tags, of.tags),
    metadata:
      metadata === undefined
        ? (inherited?.metadata ?? NO_METADATA)
        : readMetadata(metadata, of.metadata, inherited?.metadata),
    retry: retry === undefined ? null : storedRetry(retry, of.retry),
    timeoutMs: timeout === undefined ? null : FIELDS.timeout(timeout, of.timeout),
    ...(expiresIn !== undefined && {
      expires: { inMs: FIELDS.expiresIn(expiresIn, of.expiresIn), from: due },
    }),
  }
}

/** The envelope with some more metadata, which replaces what has the same name. */
export function withMetadata(envelope: Envelope, added: Readonly<Record<string, string>>): Envelope {
  return { ...envelope, metadata: readMetadata(added, 'metadata', envelope.metadata) }
}

function readRetry(value: unknown, path: string): RetryOptions {
  resolveRetry(value as RetryOptions, DEFAULT_RETRY, locate(path, RETRY_FIELDS))
  return storedRetry(value as RetryOptions, path)
}

/** A policy that travels with the job must survive JSON; functions belong into the definition. */
function storedRetry(retry: RetryOptions, path: string): RetryOptions {
  for (const [field, value] of Object.entries(retry)) {
    if (typeof value !== 'function') continue
    const what = `\`${path}.${field}\` is a function, which cannot be stored with a job.`
    throw new HoldfastError('HF_BAD_OPTION', what, { hint: `Put it into \`retry\` of the job's definition.` })
  }
  return { ...retry }
}

function readMetadata(
  own: unknown,
  path: string,
  inherited?: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (typeof own !== 'object' || own === null || Array.isArray(own))
    throw refused(path, own, 'an object of texts')
  for (const [key, value] of Object.entries(own)) METADATA_TEXT(value, `${path}.${key}`)
  const metadata = { ...inherited, ...own }
  try {
    encodeStrict(metadata, METADATA_LIMITS)
  } catch (error) {
    if (!(error instanceof JsonRejected)) throw error
    throw new HoldfastError(
      'HF_BAD_OPTION',
      `\`${path}\` cannot be stored: ${error.path} ${error.problem}.`,
      { hint: 'Use up to 8 KiB of texts, without NUL bytes or broken characters.' },
    )
  }
  return metadata
}
