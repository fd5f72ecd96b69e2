/** Everything that is decided about a job before it is written: a pure function of definition, input and options. */
import { HoldfastError } from '../errors.ts'
import type { Duration } from '../std/duration.ts'
import { encodeStrict, JsonRejected } from '../std/json.ts'
import { readDuration, readInstant, type Instant } from './duration.ts'
import { readQueue, type JobDefinition } from './definition.ts'
import type { JobId } from './ids.ts'
import { headStartMs, readPriority, type Priority } from './rank.ts'
import type { Due, Envelope, NewJob } from './record.ts'
import { resolveRetry, type RetryOptions } from './retry.ts'
import { readUnique, type Unique } from './unique.ts'

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

const FIELDS: ReadonlySet<string> = new Set([
  'queue',
  'priority',
  'in',
  'at',
  'unique',
  'tags',
  'retry',
  'timeout',
  'expiresIn',
  'correlationId',
  'metadata',
])

/** No options: the parts of such a job are read once per definition. */
export const NO_OPTIONS: NewJobOptions = Object.freeze({})

/** A job to be enqueued. */
export interface EnqueueItem {
  readonly definition: JobDefinition
  readonly input: unknown
  readonly options: NewJobOptions
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
  readonly queues: QueueRules
  readonly inherited: Inherited | undefined
}

/** All parts of a job except its id and input: read once, however many jobs are made from it. */
export interface JobTemplate extends Omit<NewJob, 'id' | 'payload' | 'unique'> {
  readonly unique: Unique | undefined
  /** Derives the key of a job if `unique` has none. */
  readonly uniqueOf: ((input: unknown) => Unique) | undefined
}

export function readTemplate({ definition, options, queues, inherited }: TemplateParts): JobTemplate {
  if (typeof options !== 'object' || options === null)
    throw bad('The options of an enqueue must be an object.')
  for (const field in options)
    if (!FIELDS.has(field)) throw bad(`Enqueue has no option "${field}".`, `Use ${[...FIELDS].join(', ')}.`)
  const queue = options.queue === undefined ? definition.queue : readQueue(options.queue, queues.names)
  const priority = options.priority === undefined ? definition.priority : readPriority(options.priority)
  const retry = resolveRetry(options.retry, definition.retry)
  const due = readDue(options)
  return {
    name: definition.name,
    queue,
    priority,
    headStartMs: headStartMs(priority, queues.agingMs(queue)),
    maxAttempts: retry.attempts,
    maxCrashes: retry.crashes,
    group: null,
    limits: NO_LIMITS,
    envelope: readEnvelope(options, due, inherited),
    due,
    unique: options.unique,
    uniqueOf: definition.unique,
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
    unique: unique === undefined ? null : readUnique(name, unique),
  }
}

export function newJob(parts: TemplateParts & JobParts): NewJob {
  return jobFrom(readTemplate(parts), parts)
}

export function readDue(options: Pick<NewJobOptions, 'in' | 'at'>): Due {
  if (options.in !== undefined && options.at !== undefined) throw bad('`in` and `at` cannot both be given.')
  if (options.in !== undefined) return { inMs: readDuration(options.in, 'in', { orZero: true }) }
  if (options.at !== undefined) return { atMs: readInstant(options.at, 'at') }
  return NOW
}

export function readEnvelope(options: NewJobOptions, due: Due, inherited: Inherited | undefined): Envelope {
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
        : readText(correlationId, 'correlationId', 200),
    tags: tags === undefined ? NO_TAGS : readTags(tags),
    metadata: readMetadata(metadata, inherited?.metadata),
    retry: retry === undefined ? null : readStoredRetry(retry),
    timeoutMs: timeout === undefined ? null : readDuration(timeout, 'timeout'),
    ...(expiresIn !== undefined && { expires: { inMs: readDuration(expiresIn, 'expiresIn'), from: due } }),
  }
}

/** A policy that travels with the job must survive JSON; functions belong in the definition. */
function readStoredRetry(retry: RetryOptions): RetryOptions {
  for (const [field, value] of Object.entries(retry)) {
    if (typeof value === 'function')
      throw bad(`retry.${field} is a function, which cannot be stored with a job.`)
  }
  return { ...retry }
}

function readTags(tags: unknown): readonly string[] {
  if (!Array.isArray(tags) || tags.length > 50) throw bad('tags must be a list of at most 50 texts.')
  // Not tags.map, which skips holes.
  return Array.from(tags, (tag, index) => readText(tag, `tags[${index}]`, 200))
}

const METADATA_LIMITS = { maxBytes: 8 * 1024, maxDepth: 1 }

function readMetadata(
  own: Readonly<Record<string, string>> | undefined,
  inherited: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> {
  if (own === undefined) return inherited ?? NO_METADATA
  if (typeof own !== 'object' || own === null || Array.isArray(own))
    throw bad('metadata must be an object of texts.')
  for (const [key, value] of Object.entries(own)) readText(value, `metadata.${key}`, 4_000)
  const metadata = { ...inherited, ...own }
  try {
    encodeStrict(metadata, METADATA_LIMITS)
  } catch (error) {
    if (!(error instanceof JsonRejected)) throw error
    throw bad(`metadata cannot be stored: ${error.path} ${error.problem}.`)
  }
  return metadata
}

function readText(value: unknown, option: string, maxChars: number): string {
  const fits = typeof value === 'string' && value !== '' && value.length <= maxChars
  if (fits && !value.includes('\0') && value.isWellFormed()) return value
  throw bad(`${option} must be a text of 1 to ${maxChars} characters without NUL bytes or broken characters.`)
}

function bad(message: string, hint?: string): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', message, hint === undefined ? {} : { hint })
}
