/** Everything that runs for one holdfast(): its workers, their manager, its manual queues, its maintenance. */
import type { Client } from './client/client.ts'
import type { Core, World } from './core/core.ts'
import { DEAD_LETTER_JOB } from './job/dead-letter.ts'
import { declareHandler } from './maintenance/dead-letters.ts'
import { HoldfastError } from './errors.ts'
import { readQueue } from './job/definition.ts'
import { Maintenance } from './maintenance/maintenance.ts'
import { DEFAULT_HEALTH } from './manager/options.ts'
import { Manager } from './manager/manager.ts'
import { logEvents, type PinoLike } from './telemetry/log.ts'
import { MessageQueue } from './manual/message-queue.ts'
import { readWorkOptions, type StopOptions, type WorkOptions } from './worker/options.ts'
import { Worker, type WorkerHealth } from './worker/worker.ts'

/** A running worker, as users hold it. */
export interface RunningWorker extends AsyncDisposable {
  readonly id: string
  health(): WorkerHealth
  /** No new jobs; running ones may finish until `drain` is over. @default drain is the worker's grace */
  stop(options?: StopOptions): Promise<void>
}

/** The hub of each holdfast() object, for the test kit and the CLI, which need more than the public API. */
const HUB = Symbol.for('holdfast.hub')

export class Hub {
  readonly client: Client
  readonly core: Core
  readonly manager: Manager
  /** A test queue drives it: a worker's own loop would wait for a clock that stands still. */
  underTest = false
  readonly #workers = new Set<Worker>()
  readonly #starts = new Set<Promise<void>>()
  #messageQueues = new Map<string, MessageQueue>()
  #maintenance: Maintenance | undefined
  #closing: Promise<void> | undefined
  #stopDefaultLog: (() => void) | undefined

  constructor(client: Client, health = DEFAULT_HEALTH) {
    const { core } = client
    this.client = client
    this.core = core
    this.manager = new Manager(core, health, (options) => this.startWorker(options))
    // A job knows its core; this leads from there to the hub.
    Hub.attach(core, this)
  }

  static attach(object: object, hub: Hub): void {
    Object.defineProperty(object, HUB, { value: hub })
  }

  static of(object: object): Hub {
    const hub = (object as { [HUB]?: Hub })[HUB]
    if (hub === undefined)
      throw new HoldfastError('HF_BAD_OPTION', 'This is not an object made by holdfast().')
    return hub
  }

  /** Moves everything into another world; returns a function that moves it back. */
  moveTo(world: World): () => void {
    const before = this.#messageQueues
    const moveBack = this.core.moveTo(world)
    this.#messageQueues = new Map()
    return () => {
      moveBack()
      this.#messageQueues = before
    }
  }

  /** Whether the default logger is in use, so that the CLI may replace it. */
  get logsByDefault(): boolean {
    return this.#stopDefaultLog !== undefined
  }

  /** Logs if the user passed no logger; called again, the new logger replaces the previous one. */
  logByDefault(logger: PinoLike): void {
    this.#stopDefaultLog?.()
    this.#stopDefaultLog = logEvents(this.core.events, logger)
  }

  get working(): boolean {
    return this.#workers.size > 0
  }

  async startWorker(options: WorkOptions): Promise<RunningWorker> {
    this.#refuseWhenClosed('start a worker')
    if (this.underTest) {
      throw new HoldfastError(
        'HF_TEST_KIT',
        'This holdfast() is driven by a test queue: it cannot start a worker.',
        {
          hint: 'Use run() and drain() of the test queue, or close() it first.',
        },
      )
    }
    const settings = readWorkOptions(this.core, options)
    const worker = new Worker(this.core, settings)
    await this.#start(worker)
    this.#refuseWhenClosed('start a worker')
    try {
      await this.client.schedules.putDeclared(settings.jobs.keys())
      await this.client.subscriptions.putDeclared(settings.jobs.keys())
      await declareHandler(this.core, settings.jobs.get(DEAD_LETTER_JOB))
      // A close that came meanwhile has stopped all that there was, and would not stop what begins now.
      this.#refuseWhenClosed('start a worker')
    } catch (error) {
      // The caller gets an error instead of a worker, so it could not stop this one.
      await this.#stopWorker(worker)
      throw error
    }
    this.#maintain(settings.leaseMs)
    const leave = this.manager.join(worker, settings)
    const stop: RunningWorker['stop'] = (how) => this.#stopWorker(worker, how, leave)
    if (options.signal !== undefined) stopOnAbort(options.signal, stop)
    return {
      get id() {
        return worker.id
      },
      health: () => worker.health(),
      stop,
      [Symbol.asyncDispose]: () => stop(),
    }
  }

  /** A concurrent close() waits for the start, then stops the worker. */
  async #start(worker: Worker): Promise<void> {
    const start = worker.start().then(() => void this.#workers.add(worker))
    this.#starts.add(start)
    try {
      await start
    } finally {
      this.#starts.delete(start)
    }
  }

  async #stopWorker(worker: Worker, how?: StopOptions, leave?: () => Promise<void>): Promise<void> {
    await worker.stop(how)
    this.#workers.delete(worker)
    const isLast = this.#workers.size === 0 && this.#messageQueues.size === 0
    await Promise.all([leave?.(), isLast ? this.#stopMaintenance() : undefined])
  }

  messageQueue(name: string): MessageQueue {
    let queue = this.#messageQueues.get(name)
    if (queue === undefined) {
      queue = new MessageQueue(this.client, readQueue(name, this.core.queues.names), (leaseMs) =>
        this.#maintain(leaseMs),
      )
      this.#messageQueues.set(name, queue)
    }
    return queue
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#starts)
    await Promise.all([...this.#workers].map((worker) => worker.stop()))
    this.#workers.clear()
    await this.manager.close()
    await Promise.all([...this.#messageQueues.values()].map((queue) => queue.close()))
    await this.#stopMaintenance()
    await this.core.connection.close()
  }

  /** One instance for all workers and queues of this holdfast(). */
  #maintain(leaseMs: number): void {
    if (this.#maintenance !== undefined) return
    this.#maintenance = new Maintenance(this.core, leaseMs, (items) => this.client.enqueuer.together(items))
    this.#maintenance.start()
  }

  async #stopMaintenance(): Promise<void> {
    const maintenance = this.#maintenance
    this.#maintenance = undefined
    await maintenance?.stop()
  }

  #refuseWhenClosed(doing: string): void {
    if (this.#closing !== undefined)
      throw new HoldfastError('HF_CLOSED', `This Holdfast is closed: could not ${doing}.`)
  }
}

function stopOnAbort(signal: AbortSignal, stop: () => Promise<void>): void {
  if (signal.aborted) void stop()
  else signal.addEventListener('abort', () => void stop(), { once: true })
}
