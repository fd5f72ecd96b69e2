/** A job's definition: read once, validated once, frozen. Invalid options are rejected here, before anything runs. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { HoldfastError } from '../errors.ts'
import type { Duration } from '../std/duration.ts'
import { readBatch, type BatchOptions, type BatchRules } from './batch.ts'
import type { RunFunction } from './context.ts'
import { readDuration } from './duration.ts'
import type { Middleware } from './middleware.ts'
import { PRIORITY_LEVELS, readPriority } from './rank.ts'
import { resolveRetry, type ResolvedRetry, type RetryPolicy } from './retry.ts'
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
}

export const DEFAULT_TIMEOUT_MS = 300_000

const FIELDS: ReadonlySet<string> = new Set([
  'name',
  'input',
  'output',
  'queue',
  'priority',
  'retry',
  'timeout',
  'unique',
  'run',
  'batch',
])
/** No white space (it separates the name from a unique key), and few characters that a log or URL must escape. */
export const NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_.:/@-]{0,199}$/u

export function readDefinition(raw: RawDefinition, defaults: DefinitionDefaults): JobDefinition {
  if (typeof raw !== 'object' || raw === null) throw bad('A job definition must be an object with a name.')
  for (const field of Object.keys(raw)) {
    if (!FIELDS.has(field)) throw bad(`Job ${show(raw.name)} has an unknown option ${show(field)}.`)
  }
  const name = readJobName(raw.name)
  if (defaults.needsHandler === true && raw.run === undefined) {
    throw bad(
      `Job "${name}" has no handler.`,
      'Give it a `run`, or define it with hf.contract() where another process implements it.',
    )
  }
  return inContext(name, () =>
    Object.freeze({
      name,
      schema: readSchema(raw.input, 'input'),
      output: readSchema(raw.output, 'output'),
      queue: readQueue(raw.queue ?? firstQueue(defaults.queues), defaults.queues),
      priority: readPriority(raw.priority ?? 'normal'),
      retry: resolveRetry(raw.retry, defaults.retry),
      timeoutMs: raw.timeout === undefined ? defaults.timeoutMs : readDuration(raw.timeout, 'timeout'),
      unique: readFunction(raw.unique, 'unique') as JobDefinition['unique'],
      run: readFunction(raw.run, 'run') as RunFunction | undefined,
      batch: raw.batch === undefined ? undefined : readBatch(raw.batch),
      middleware: defaults.middleware,
    }),
  )
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
  if (typeof name === 'string' && NAME.test(name)) return name
  throw bad(
    `${show(name)} is not a job name.`,
    "Use 1 to 200 letters, digits and _ . : / @ - without spaces, such as 'send-welcome'.",
  )
}

/** 'default' if it is declared, otherwise the first queue. */
function firstQueue(queues: readonly string[]): string {
  return queues.includes('default') ? 'default' : (queues[0] ?? 'default')
}

export function readQueue(queue: unknown, queues: readonly string[]): string {
  if (typeof queue === 'string' && queues.includes(queue)) return queue
  throw new HoldfastError('HF_UNKNOWN_QUEUE', `There is no queue ${show(queue)}.`, {
    hint: `Declare it in holdfast({ queues: { … } }), or use one of: ${queues.join(', ')}.`,
  })
}

export function readSchema(schema: unknown, option: string): StandardSchemaV1 | undefined {
  if (schema === undefined) return undefined
  // Some libraries' schemas are functions.
  const standard =
    (typeof schema === 'object' || typeof schema === 'function') && schema !== null
      ? (schema as Partial<StandardSchemaV1>)['~standard']
      : undefined
  if (typeof standard?.validate === 'function') return schema as StandardSchemaV1
  throw bad(
    `\`${option}\` is not a schema.`,
    'Use a schema that follows Standard Schema: zod, valibot, arktype and others do.',
  )
}

function readFunction(value: unknown, option: string): unknown {
  if (value === undefined || typeof value === 'function') return value
  throw bad(`\`${option}\` is not a function.`)
}

/** Adds the job's name to errors about its options. */
function inContext<T>(name: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    throw new HoldfastError(error.code, `Job "${name}": ${error.message}`, { hint: error.hint, cause: error })
  }
}

function bad(message: string, hint?: string): HoldfastError {
  return new HoldfastError('HF_BAD_JOB', message, hint === undefined ? {} : { hint })
}
