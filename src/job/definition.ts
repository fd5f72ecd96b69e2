/** A job's definition: read once, validated once, frozen. Invalid options are rejected here, before anything runs. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { HoldfastError } from '../errors.ts'
import type { Duration } from '../std/duration.ts'
import { readBatch, type BatchOptions, type BatchRules } from './batch.ts'
import type { RunFunction } from './context.ts'
import { duration } from './duration.ts'
import type { Middleware } from './middleware.ts'
import { notFound } from './not-found.ts'
import { asGiven, fn, locate, readersFor, readOptions, refuseUnknown, under } from './options.ts'
import { PRIORITY_LEVELS, readPriority } from './rank.ts'
import { resolveRetry, RETRY_FIELDS, type ResolvedRetry, type RetryPolicy } from './retry.ts'
import { show } from './show.ts'
import type { Unique } from './unique.ts'

/** As users write it; the public types in client/ add inference on top. */
export interface RawDefinition {
  readonly name: string
  readonly input?: StandardSchemaV1 | undefined
  readonly output?: StandardSchemaV1 | undefined
  readonly queue?: string | undefined
  readonly priority?: unknown
  readonly retry?: RetryPolicy | undefined
  readonly timeout?: Duration | undefined
  readonly unique?: ((input: never) => Unique) | undefined
  readonly run?: unknown
  readonly batch?: BatchOptions | undefined
  readonly schedule?: unknown
}

export interface JobDefinition {
  readonly name: string
  readonly schema: StandardSchemaV1 | undefined
  /** A contract's promise about its result, checked when the handler returns. */
  readonly output: StandardSchemaV1 | undefined
  readonly queue: string
  readonly priority: number
  readonly retry: ResolvedRetry
  readonly timeoutMs: number
  readonly unique: ((input: unknown) => Unique) | undefined
  /** Missing on a contract whose implementation is not in this process. */
  readonly run: RunFunction | undefined
  /** Present if `run` takes a batch of jobs. */
  readonly batch: BatchRules | undefined
  /** Middleware around the handler, outermost first. */
  readonly middleware: readonly Middleware[]
}

export interface DefinitionDefaults {
  readonly queues: readonly string[]
  readonly retry: ResolvedRetry
  readonly timeoutMs: number
  readonly middleware: readonly Middleware[]
  /** Missing for a contract. */
  readonly needsHandler?: boolean
  /** What the definition is passed to. @default 'job()' */
  readonly path?: string
}

export const DEFAULT_TIMEOUT_MS = 300_000

const FIELDS = readersFor<RawDefinition>()({
  name: asGiven,
  input: readSchema,
  output: readSchema,
  queue: asGiven,
  priority: readPriority,
  // Filled from the defaults.
  retry: asGiven,
  timeout: duration(),
  unique: under('HF_BAD_JOB', fn<NonNullable<JobDefinition['unique']>>()),
  run: under('HF_BAD_JOB', fn<RunFunction>()),
  batch: readBatch,
  // Read by what keeps schedules.
  schedule: asGiven,
})

/** No white space (it separates the name from a unique key) and nothing that a log or a URL would have to escape much. */
export const NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_.:/@-]{0,199}$/u

export function readDefinition(raw: RawDefinition, defaults: DefinitionDefaults): JobDefinition {
  const { path = 'job()' } = defaults
  // A misspelt `name` should not be told as a bad name.
  inContext(Object(raw) as RawDefinition, () => refuseUnknown(raw, path, FIELDS, 'HF_BAD_JOB'))
  const name = readJobName(raw.name)
  if (defaults.needsHandler === true && raw.run === undefined) {
    throw bad(
      `Job "${name}" has no handler.`,
      'Give it a `run`, or define it with hf.contract() where another process implements it.',
    )
  }
  return inContext(raw, () => {
    const given = readOptions(raw, path, FIELDS, 'HF_BAD_JOB')
    return Object.freeze({
      name,
      schema: given.input,
      output: given.output,
      queue: readQueue(
        given.queue === undefined ? firstQueue(defaults.queues) : given.queue,
        defaults.queues,
      ),
      priority: given.priority ?? PRIORITY_LEVELS.normal,
      retry: resolveRetry(raw.retry, defaults.retry, locate(`${path}.retry`, RETRY_FIELDS)),
      timeoutMs: given.timeout ?? defaults.timeoutMs,
      unique: given.unique,
      run: given.run,
      batch: given.batch,
      middleware: defaults.middleware,
    })
  })
}

/** For a job that is known by name only. */
export function plainDefinition(
  name: string,
  queue: string,
  { retry, jobTimeoutMs: timeoutMs }: { readonly retry: ResolvedRetry; readonly jobTimeoutMs: number },
): JobDefinition {
  return {
    name,
    schema: undefined,
    output: undefined,
    queue,
    priority: PRIORITY_LEVELS.normal,
    retry,
    timeoutMs,
    unique: undefined,
    run: undefined,
    batch: undefined,
    middleware: [],
  }
}

export function readJobName(name: unknown): string {
  if (isJobName(name)) return name
  throw bad(
    `${show(name)} is not a job name.`,
    "Use 1 to 200 letters, digits and _ . : / @ - without spaces, such as 'send-welcome'.",
  )
}

function isJobName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name)
}

/** 'default' where it is declared, else the first queue. */
function firstQueue(queues: readonly string[]): string {
  return queues.includes('default') ? 'default' : (queues[0] ?? 'default')
}

export function readQueue(queue: unknown, queues: readonly string[]): string {
  if (typeof queue === 'string' && queues.includes(queue)) return queue
  throw notFound('queue', queue, queues)
}

export function readSchema(schema: unknown, path: string): StandardSchemaV1 {
  // Some libraries' schemas are functions.
  const standard =
    (typeof schema === 'object' || typeof schema === 'function') && schema !== null
      ? (schema as Partial<StandardSchemaV1>)['~standard']
      : undefined
  if (typeof standard?.validate === 'function') return schema as StandardSchemaV1
  throw bad(
    `\`${path}\` is not a schema.`,
    'Use a schema that follows Standard Schema: zod, valibot, arktype and others do.',
  )
}

/** Names the job in whatever its options raise. */
function inContext<T>({ name }: { readonly name?: unknown }, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof HoldfastError) || !isJobName(name)) throw error
    throw new HoldfastError(error.code, `Job "${name}": ${error.message}`, { hint: error.hint, cause: error })
  }
}

function bad(message: string, hint?: string): HoldfastError {
  return new HoldfastError('HF_BAD_JOB', message, hint === undefined ? {} : { hint })
}
