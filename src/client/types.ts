/** The types that connect definitions, inputs and results. No code. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { BatchOptions } from '../job/batch.ts'
import type { BatchContext, RunContext } from '../job/context.ts'
import type { Instant } from '../job/duration.ts'
import type { NewJobOptions } from '../job/new-job.ts'
import type { Priority } from '../job/rank.ts'
import type { RetryPolicy } from '../job/retry.ts'
import type { Unique } from '../job/unique.ts'
import type { ScheduleSpec } from '../scheduler/spec.ts'
import type { Duration } from '../std/duration.ts'
import type { Snooze } from '../job/context.ts'
import type { Handle } from './handle.ts'
import type { ManyCounts } from './enqueuer.ts'

type AnyFunction = (...args: never[]) => unknown

/** What T looks like after a round trip through JSON (Date → string, functions dropped). */
export type Jsonify<T> = unknown extends T
  ? unknown
  : T extends { toJSON(): infer R }
    ? R
    : T extends string | number | boolean | null | undefined | void
      ? T
      : T extends bigint | symbol | AnyFunction
        ? never
        : T extends readonly unknown[]
          ? { [I in keyof T]: Jsonify<T[I]> }
          : T extends object
            ? { [K in keyof T as T[K] extends AnyFunction | symbol ? never : K]: Jsonify<T[K]> }
            : never

/** T with `never` wherever JSON could not preserve it. A mapped type, so that a type may contain itself. */
type JsonOnly<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends bigint | symbol | AnyFunction | Date | Map<unknown, unknown> | Set<unknown>
      ? never
      : { [K in keyof T]: JsonOnly<T[K]> }

type IsJson<T> = [T] extends [JsonOnly<T>] ? true : false

declare const hint: unique symbol
/** Shows its message if a type does not fit. */
export interface Hint<Message extends string> {
  readonly [hint]: Message
}

/** The input of an enqueue. */
export type Raw<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferInput<S> : void
/** The handler's input, after defaults and coercions. */
export type Parsed<S> = S extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<S> : undefined

export type JsonInput<S> = S extends StandardSchemaV1
  ? false extends IsJson<StandardSchemaV1.InferInput<S>>
    ? Hint<'job input must be JSON: accept an ISO string instead of Date (z.iso.datetime(), z.coerce.date()), a string instead of bigint'>
    : unknown
  : unknown

/** A statement's result is checked at run time. */
type Answer = PromiseLike<unknown>

/**
 * A transaction of an SQLite library on the database passed to `sqliteStore({ database })`: the only kind that can
 * enqueue without a promise.
 */
export type SqliteTx =
  /** A handle of better-sqlite3, libsql, `node:sqlite` or `@photostructure/sqlite` while a transaction is open on it. */
  | { prepare(sql: string): unknown; exec(sql: string): unknown; close(): unknown }
  /** Drizzle on better-sqlite3: the argument of `db.transaction()`'s callback. */
  | { run(query: string): unknown; all(query: string): unknown; rollback(): never }

/**
 * A transaction that you began with the library of your choice, on the database that contains Holdfast's tables.
 * Recognised by shape; a pool, or a connection outside a transaction, is refused, by the compiler if possible.
 */
export type Tx =
  | SqliteTx
  /**
   * A client of `pg` after BEGIN; TypeORM's EntityManager or QueryRunner in a transaction; or any object whose
   * query(text, values) resolves to `{ rows }`.
   */
  | {
      query(text: string, values: (string | null)[]): Answer
      /** A `pg.Pool` has these fields: it runs each query on any of its connections. */
      readonly totalCount?: never
      /** A DataSource. */
      readonly isInitialized?: never
    }
  /** postgres.js: the argument of `sql.begin()`'s callback, or a reserved connection after BEGIN. */
  | { unsafe(text: string, values: (string | null)[]): Answer; savepoint: unknown }
  | { unsafe(text: string, values: (string | null)[]): Answer; release(): void }
  /** Kysely: a Transaction. */
  | { executeQuery(query: never): Answer; readonly isTransaction: true }
  /** Drizzle with any driver: the argument of `db.transaction()`'s callback. */
  | { execute(query: string): Answer; rollback(): never }
  /** Prisma: the argument of `prisma.$transaction()`'s callback. */
  | { $queryRawUnsafe(text: string, ...values: (string | null)[]): Answer; readonly $connect?: never }
  /** Knex: a Transaction. */
  | { raw(text: string, bindings: (string | null)[]): Answer; isCompleted(): boolean }

export interface TxOptions {
  /** Enqueues in this transaction: the job exists if and only if it commits. */
  readonly tx?: Tx | undefined
}

export interface EnqueueOptions<Q extends string = string> extends NewJobOptions<Q>, TxOptions {}

/** Options of `enqueueSync`, which is for transactions only. */
export interface EnqueueSyncOptions<Q extends string = string> extends NewJobOptions<Q> {
  readonly tx: SqliteTx
}

export type Args<In, Q extends string = string, Options = EnqueueOptions<Q>> = unknown extends In
  ? [input?: In, options?: Options]
  : void extends In
    ? [input?: undefined, options?: Options]
    : undefined extends In
      ? [input?: In, options?: Options]
      : [input: In, options?: Options]

/** A job with its input, to be enqueued together with others. */
export interface Item {
  readonly kind: 'item'
  readonly job: string
  readonly input: unknown
  readonly options: NewJobOptions
}

export interface Job<Name extends string, In, Out, Q extends string = string> {
  readonly name: Name
  enqueue(...args: Args<In, Q>): Promise<Handle<Out>>
  /**
   * Enqueues in a transaction of better-sqlite3, or of Drizzle on it, which accept no async function. Needs
   * `sqliteStore({ database })`, `{ tx }`, and a schema that validates synchronously. The job exists if and only if the
   * transaction commits.
   */
  enqueueSync(input: void extends In ? In | undefined : In, options: EnqueueSyncOptions<Q>): Handle<Out>
  /**
   * Enqueues any number of inputs in bounded memory. Throws a PartialEnqueueError that lists by index the inputs that
   * could not be enqueued; all others are enqueued. If the iterable throws midway, that is listed last, and the inputs
   * before it are enqueued. For an array, the result has the ids, in order.
   */
  enqueueMany(
    inputs: readonly In[],
    options?: EnqueueOptions<Q>,
  ): Promise<ManyCounts & { readonly ids: readonly string[] }>
  enqueueMany(inputs: Iterable<In> | AsyncIterable<In>, options?: EnqueueOptions<Q>): Promise<ManyCounts>
  /** For hf.enqueueMany(): several different jobs in one step. */
  with(...args: Args<In, Q, NewJobOptions<Q>>): Item
  /**
   * Creates a schedule that enqueues this job, or changes the one with that id. It is kept in the store, so every
   * process sees the same.
   */
  schedule(id: string, spec: ScheduleSpec<In>): Promise<void>
  /** False if this job has no schedule with that id. */
  unschedule(id: string): Promise<boolean>
  /**
   * Changes the input, priority or time of a waiting job, including one that waits for a retry. False if the job is
   * already running or finished.
   */
  edit(id: string, changes: JobChanges<In>): Promise<boolean>
  /** A job by its id; null if no job of this name has that id. */
  get(id: string): Promise<Handle<Out> | null>
}

export interface JobChanges<In> {
  readonly input?: In
  readonly priority?: Priority
  /** Runs after this long from now; not together with `at`. */
  readonly in?: Duration
  /** Runs at this time; not together with `in`. */
  readonly at?: Instant
}

export interface JobOptions<N extends string, S extends StandardSchemaV1 | undefined, Q extends string> {
  readonly name: N
  /** Any Standard Schema; checked at the enqueue and again before the handler. */
  readonly input?: S & JsonInput<S>
  /** @default 'default', or the first queue declared */
  readonly queue?: NoInfer<Q>
  /** @default 'normal' */
  readonly priority?: Priority
  readonly retry?: RetryPolicy
  /** Maximum run time of an attempt. @default '5m' */
  readonly timeout?: Duration
  readonly unique?: (input: Raw<S>) => Unique
  /** Stored under the job's name when a worker that runs it starts. */
  readonly schedule?: ScheduleSpec<Raw<S>>
}

export interface JobWithRun<
  N extends string,
  S extends StandardSchemaV1 | undefined,
  Q extends string,
  Ctx,
  R,
> extends JobOptions<N, S, Q> {
  run(context: RunContext<Parsed<S>, Ctx>): R | Promise<R>
}

/** A job whose handler takes many jobs per call. */
export interface BatchJobOptions<
  N extends string,
  S extends StandardSchemaV1 | undefined,
  Q extends string,
  Ctx,
  R,
> extends JobOptions<N, S, Q> {
  /** Batch size, and how long to wait for a batch to fill. */
  readonly batch?: BatchOptions
  /**
   * Returns a result for each job, in order: an Error for a job that failed and is retried alone, `snooze()` of its
   * context for one to run later. The result of Promise.allSettled() works as well. Returning nothing completes all
   * jobs. If the handler throws, every job in the batch fails.
   */
  run(batch: BatchContext<Parsed<S>, Ctx>): BatchResults<R> | Promise<BatchResults<R>>
}

type BatchResults<R> = readonly R[] | void

type Unsettled<R> =
  R extends PromiseFulfilledResult<infer Value> ? Value : R extends PromiseRejectedResult ? never : R

/** Result type of one job in a batch. */
export type BatchReturned<R> = Jsonify<Exclude<Unsettled<Awaited<R>>, Snooze | Error>>

/** A handler's result as the handle returns it; a snooze is not a result. */
export type Returned<R> = Jsonify<Exclude<R, Snooze>>

export interface ContractOptions<
  N extends string,
  S extends StandardSchemaV1 | undefined,
  O extends StandardSchemaV1 | undefined,
  Q extends string,
> extends JobOptions<N, S, Q> {
  /** Schema of the result, validated when the handler returns. */
  readonly output?: O & JsonInput<O>
}

/** A job without its handler: import it from a web bundle without pulling the handler's dependencies in. */
export interface Contract<N extends string, S, O, Q extends string, Ctx> extends Job<N, Raw<S>, Raw<O>, Q> {
  implement(
    run: (context: RunContext<Parsed<S>, Ctx>) => Raw<O> | Snooze | Promise<Raw<O> | Snooze>,
  ): Job<N, Raw<S>, Raw<O>, Q>
}
