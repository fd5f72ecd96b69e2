/** holdfast(): composes all the parts into the object that users hold. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { Client } from './client/client.ts'
import { Core } from './core/core.ts'
import { deadLetters, type DeadLetters } from './client/dead-letters.ts'
import { eventObject } from './client/event.ts'
import type {
  DomainEvent,
  Subscriber,
  SubscriberByName,
  SubscriberWithRun,
  To,
} from './client/event-types.ts'
import { jobObject, type UntypedJob } from './client/job.ts'
import { sealJob } from './core/job-mark.ts'
import { CLIENT_FIELDS, settingsFrom, type ClientOptions, type QueueConfig } from './core/settings.ts'
import type { Schedules } from './client/schedules.ts'
import type { Subscriptions } from './client/subscriptions.ts'
import type {
  BatchJobOptions,
  BatchReturned,
  Contract,
  ContractOptions,
  Item,
  Job,
  JobWithRun,
  JsonInput,
  Raw,
  Returned,
  TxOptions,
} from './client/types.ts'
import { HoldfastError } from './errors.ts'
import { readSubscriber } from './flow/subscriber.ts'
import type { RunFunction } from './job/context.ts'
import { readDefinition, readQueue, type RawDefinition } from './job/definition.ts'
import { EVENT_NAMES, type Events } from './job/events.ts'
import { asGiven, readersFor, readOptions, refuseUnknown } from './job/options.ts'
import type { Middleware, MiddlewareArgs, Next } from './job/middleware.ts'
import type { Health } from './manager/health.ts'
import { DEFAULT_HEALTH, readHealthOptions, type HealthOptions } from './manager/options.ts'
import type { Workers } from './manager/workers.ts'
import type { ScheduleSpec } from './scheduler/spec.ts'
import { systemClock } from './std/clock.ts'
import { Emitter, type Listener } from './std/emitter.ts'
import { systemRandom } from './std/random.ts'
import { toError } from './std/text.ts'
import { storeFrom } from './stores/from-url.ts'
import type { QueueStatus } from './stores/store.ts'
import { consoleLogger } from './telemetry/console-logger.ts'
import { logEvents, readLogger, type PinoLike } from './telemetry/log.ts'
import type { MessageQueue } from './manual/message-queue.ts'
import type { WorkOptions } from './worker/options.ts'
import { Hub, type RunningWorker } from './hub.ts'

export interface Options<Queues extends Record<string, QueueConfig>> extends ClientOptions<Queues> {
  /** How often workers and checks are evaluated, and the thresholds beyond which a worker is unhealthy. */
  readonly health?: HealthOptions
  /** A pino logger, or any object with its debug, info, warn and error; false for none. @default warnings to stderr */
  readonly logger?: PinoLike | false
}

export interface Holdfast<Q extends string, Ctx> extends AsyncDisposable {
  /** Defines a job: its name, its input's schema, its handler. */
  job<const N extends string, R = void, S extends StandardSchemaV1 | undefined = undefined>(
    definition: JobWithRun<N, S, Q, Ctx, R>,
  ): Job<N, Raw<S>, Returned<R>, Q>
  /** Defines a job whose handler takes many jobs per call. Put batch jobs in their own queue. */
  batchJob<const N extends string, R = void, S extends StandardSchemaV1 | undefined = undefined>(
    definition: BatchJobOptions<N, S, Q, Ctx, R>,
  ): Job<N, Raw<S>, BatchReturned<R>, Q>
  /** Defines a job without its handler, for code that only enqueues it. */
  contract<
    const N extends string,
    S extends StandardSchemaV1 | undefined = undefined,
    O extends StandardSchemaV1 | undefined = undefined,
  >(
    definition: ContractOptions<N, S, O, Q>,
  ): Contract<N, S, O, Q, Ctx>
  /** Defines a domain event: its name, and the schema of its data. */
  event<const N extends string, S extends StandardSchemaV1 | undefined = undefined>(
    name: N,
    schema?: S & JsonInput<S>,
  ): DomainEvent<N, S>
  /** Defines a job that runs for each event it subscribes to. */
  subscribe<const N extends string, const T extends To, R = void>(
    definition: SubscriberWithRun<N, T, Q, Ctx, R>,
  ): Subscriber<N, T, Returned<R>, Q>
  subscribe<const N extends string, const T extends To>(
    definition: SubscriberByName<N, T, Q, Ctx>,
  ): Subscriber<N, T, unknown, Q>
  /** Returns a holdfast() whose jobs run inside this middleware. */
  use<E extends object>(middleware: (args: MiddlewareArgs<Ctx>) => Promise<Next<E>>): Holdfast<Q, Ctx & E>
  /** Enqueues different jobs in one step: all of them or none. At most 1,000. */
  enqueueMany(
    items: readonly Item[],
    options?: TxOptions,
  ): Promise<{ readonly inserted: number; readonly ids: readonly string[] }>
  /** A queue for sending and pulling messages manually. */
  queue(name: Q): MessageQueue
  /** Starts a worker in this process. */
  work(options?: WorkOptions<Q>): Promise<RunningWorker>
  /** Named workers, started and stopped together; the status of all workers on this store. */
  readonly workers: Workers<Q>
  /** Health of this process's workers, with your own checks. */
  readonly health: Health
  on<E extends keyof Events>(event: E, listener: Listener<Events[E]>): () => void
  /**
   * Once this resolves, no worker claims from the queue. Workers of this holdfast() have released the jobs that had not
   * started, without using an attempt; others do so within a second.
   */
  pause(queue: Q): Promise<void>
  resume(queue: Q): Promise<void>
  /** Schedules: list, preview ticks, pause, run now, remove. */
  readonly schedules: Schedules
  /** Jobs that failed for good: list, group, replay, discard, handle. */
  readonly deadLetters: DeadLetters<Q>
  /** Subscriptions to domain events, of every process: list, remove. */
  readonly subscriptions: Subscriptions
  /** Number of waiting, running and finished jobs in each queue. */
  queues(): Promise<readonly QueueStatus[]>
  /** Stops the workers and closes the store. */
  close(): Promise<void>
}

const FIELDS = readersFor<Options<Record<string, QueueConfig>>>()({
  ...CLIENT_FIELDS,
  health: readHealthOptions,
  logger: readLogger,
})
const TX_FIELDS = readersFor<TxOptions>()({ tx: asGiven })

export function holdfast<const Queues extends Record<string, QueueConfig> = { default: QueueConfig }>(
  options: Options<Queues> = {},
): Holdfast<Extract<keyof Queues, string>, object> {
  const { health = DEFAULT_HEALTH, logger, ...client } = readOptions(options, 'holdfast()', FIELDS)
  const settings = settingsFrom(client, process.env)
  const world = {
    store: storeFrom(settings.store, systemClock, systemRandom),
    clock: systemClock,
    random: systemRandom,
  }
  const events = new Emitter<Events>((error, event) => {
    // If a listener of this event fails as well, ignore it.
    if (event !== 'listener.failed') events.emit('listener.failed', { event, error: toError(error) })
  })
  const hub = new Hub(new Client(new Core(world, settings, events)), health)
  if (logger === undefined) hub.logByDefault(defaultLogger())
  else if (logger !== false) logEvents(events, logger)
  return new HoldfastObject(hub, [])
}

function defaultLogger(): PinoLike {
  const sink = process.stderr
  const tty = sink.isTTY
  return consoleLogger({
    sink,
    clock: systemClock,
    level: 'warn',
    format: tty ? 'tidy' : 'json',
    // Respects NO_COLOR.
    colour: tty && sink.hasColors(),
  })
}

/** Counts of a declared queue without any job. */
function emptyQueue(queue: string): QueueStatus {
  const counts = { scheduled: 0, blocked: 0, ready: 0, running: 0, completed: 0, dead: 0, cancelled: 0 }
  return { queue, paused: false, counts, oldestReadyAt: null }
}

class HoldfastObject<Q extends string, Ctx> implements Holdfast<Q, Ctx> {
  readonly #hub: Hub
  readonly #middleware: readonly Middleware[]

  constructor(hub: Hub, middleware: readonly Middleware[]) {
    this.#hub = hub
    this.#middleware = middleware
    Hub.attach(this, hub)
  }

  job<const N extends string, R = void, S extends StandardSchemaV1 | undefined = undefined>(
    definition: JobWithRun<N, S, Q, Ctx, R>,
  ): Job<N, Raw<S>, Returned<R>, Q> {
    return sealJob(
      this.#hub.core,
      this.#define(definition, { needsHandler: true, path: 'job()' }),
    ) as object as Job<N, Raw<S>, Returned<R>, Q>
  }

  batchJob<const N extends string, R = void, S extends StandardSchemaV1 | undefined = undefined>(
    definition: BatchJobOptions<N, S, Q, Ctx, R>,
  ): Job<N, Raw<S>, BatchReturned<R>, Q> {
    const job = this.#define({ batch: {}, ...definition }, { needsHandler: true, path: 'batchJob()' })
    return sealJob(this.#hub.core, job) as object as Job<N, Raw<S>, BatchReturned<R>, Q>
  }

  contract<
    const N extends string,
    S extends StandardSchemaV1 | undefined = undefined,
    O extends StandardSchemaV1 | undefined = undefined,
  >(definition: ContractOptions<N, S, O, Q>): Contract<N, S, O, Q, Ctx> {
    const { core } = this.#hub
    const job = this.#define(definition, { needsHandler: false, path: 'contract()' })
    const implement = (run: unknown): object => {
      core.registry.implement(definition.name, run as RunFunction)
      return sealJob(core, { ...job })
    }
    return sealJob(core, { ...job, implement }) as object as Contract<N, S, O, Q, Ctx>
  }

  event<const N extends string, S extends StandardSchemaV1 | undefined = undefined>(
    name: N,
    schema?: S & JsonInput<S>,
  ): DomainEvent<N, S> {
    return eventObject(this.#hub.client, name, schema) as object as DomainEvent<N, S>
  }

  subscribe<const N extends string, const T extends To, R = unknown>(
    definition: SubscriberWithRun<N, T, Q, Ctx, R> | SubscriberByName<N, T, Q, Ctx>,
  ): Subscriber<N, T, Returned<R>, Q> {
    const { core, client } = this.#hub
    const { subscriptions } = client
    const read = readSubscriber(definition)
    const job = this.#define(read.job, { needsHandler: true, path: 'subscribe()' })
    subscriptions.declare(job.name, read.patterns)
    return sealJob(core, {
      ...job,
      subscribe: () => subscriptions.put(job.name),
      unsubscribe: () => subscriptions.remove(job.name),
    }) as object as Subscriber<N, T, Returned<R>, Q>
  }

  #define(definition: object, { needsHandler, path }: { needsHandler: boolean; path: string }): UntypedJob {
    const { core, client } = this.#hub
    const { retry, jobTimeoutMs: timeoutMs } = core.settings
    const defaults = {
      queues: core.queues.names,
      retry,
      timeoutMs,
      middleware: this.#middleware,
      needsHandler,
      path,
    }
    const read = readDefinition(definition as RawDefinition, defaults)
    const { schedule } = definition as { readonly schedule?: ScheduleSpec }
    if (schedule !== undefined) client.schedules.declare(read.name, schedule)
    core.registry.add(read)
    return jobObject(client, read)
  }

  use<E extends object>(middleware: (args: MiddlewareArgs<Ctx>) => Promise<Next<E>>): Holdfast<Q, Ctx & E> {
    return new HoldfastObject(this.#hub, [...this.#middleware, middleware as unknown as Middleware])
  }

  async enqueueMany(
    items: readonly Item[],
    options: TxOptions = {},
  ): Promise<{ inserted: number; ids: readonly string[] }> {
    refuseUnknown(options, 'hf.enqueueMany()', TX_FIELDS)
    const { core, client } = this.#hub
    const answers = await client.enqueuer.together(
      items.map((item) => ({
        definition: core.jobNamed(item.job),
        input: item.input,
        options: item.options,
      })),
      options.tx,
    )
    return {
      inserted: answers.filter((answer) => answer.outcome === 'inserted').length,
      ids: answers.map((answer) => answer.id),
    }
  }

  queue(name: Q): MessageQueue {
    return this.#hub.messageQueue(name)
  }

  work(options: WorkOptions<Q> = {}): Promise<RunningWorker> {
    return this.#hub.startWorker(options)
  }

  get workers(): Workers<Q> {
    return this.#hub.manager.workers
  }

  get health(): Health {
    return this.#hub.manager.health
  }

  on<E extends keyof Events>(event: E, listener: Listener<Events[E]>): () => void {
    if (!EVENT_NAMES.includes(event)) {
      throw new HoldfastError('HF_BAD_OPTION', `There is no event ${JSON.stringify(event)}.`, {
        hint: `Use one of: ${EVENT_NAMES.join(', ')}.`,
      })
    }
    return this.#hub.core.events.on(event, listener)
  }

  async pause(queue: Q): Promise<void> {
    await this.#setPaused(queue, true)
    this.#hub.core.events.emit('queue.paused', { queue })
  }

  async resume(queue: Q): Promise<void> {
    await this.#setPaused(queue, false)
    this.#hub.core.events.emit('queue.resumed', { queue })
  }

  async #setPaused(queue: string, paused: boolean): Promise<void> {
    const { store, localWorkers, queues } = this.#hub.core
    const name = readQueue(queue, queues.names)
    await store.setPaused(name, paused)
    if (paused) localWorkers.paused(name)
  }

  get schedules(): Schedules {
    return this.#hub.client.schedules
  }

  get deadLetters(): DeadLetters<Q> {
    return deadLetters(this.#hub.core, (definition, path) => {
      this.#define(definition, { needsHandler: true, path })
    })
  }

  get subscriptions(): Subscriptions {
    return this.#hub.client.subscriptions
  }

  async queues(): Promise<readonly QueueStatus[]> {
    const { store, queues } = this.#hub.core
    const known = await store.queues()
    const untouched = queues.names.filter((name) => known.every((status) => status.queue !== name))
    return [...known, ...untouched.map(emptyQueue)].sort((a, b) => (a.queue < b.queue ? -1 : 1))
  }

  close(): Promise<void> {
    return this.#hub.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
