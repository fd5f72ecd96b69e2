/** `hf.workers`: workers defined by name, started and stopped together, and visible to the whole fleet. */
import type { Core } from '../core/core.ts'
import { HoldfastError } from '../errors.ts'
import { readName } from '../job/name.ts'
import { notFound } from '../job/not-found.ts'
import { messageOf, toError } from '../std/text.ts'
import { readStopOptions, readWorkOptions, type StopOptions, type WorkOptions } from '../worker/options.ts'
import type { WorkerVerdict } from './health.ts'
import type { WorkerStatus } from './status.ts'

/** `hf.workers` */
export interface Workers<Q extends string = string> {
  /** Defines a worker by name, with the options of hf.work(); start() starts it. */
  define(name: string, options?: Omit<WorkOptions<Q>, 'name'>): void
  /**
   * Starts all defined workers, or one; running ones keep running. If one cannot be started, the workers that this call
   * started are stopped again, and its error is thrown.
   */
  start(name?: string): Promise<void>
  /** Stops all defined workers, or one. They stay defined. */
  stop(options?: StopOptions): Promise<void>
  stop(name: string, options?: StopOptions): Promise<void>
  /** Every worker that runs on this store, in any process. */
  status(): Promise<readonly WorkerStatus[]>
}

/** The part of a running worker used here. */
export interface Startable {
  readonly id: string
  stop(options?: StopOptions): Promise<void>
}

export interface WorkerBookParts {
  readonly core: Core
  readonly startWorker: (options: WorkOptions) => Promise<Startable>
  /** Whether the worker with this id is running and not stopping. */
  readonly isRunning: (id: string) => boolean
  readonly status: () => Promise<readonly WorkerStatus[]>
}

interface Entry {
  readonly name: string
  readonly options: WorkOptions
  worker?: Startable | undefined
  starting?: Promise<void> | undefined
  /** Why it is not running although it should be. */
  problem?: string | undefined
}

export class WorkerBook implements Workers {
  readonly #parts: WorkerBookParts
  readonly #entries = new Map<string, Entry>()

  constructor(parts: WorkerBookParts) {
    this.#parts = parts
  }

  define(name: string, options: Omit<WorkOptions, 'name'> = {}): void {
    readName(name, 'workers.define(name)')
    if (this.#entries.has(name))
      throw new HoldfastError('HF_DUPLICATE_WORKER', `There is already a worker named "${name}".`)
    const named = { ...options, name }
    inContext(name, () => this.#refuseBad(named))
    this.#entries.set(name, { name, options: named })
  }

  async start(name?: string): Promise<void> {
    const chosen = this.#choose(name)
    if (chosen.length === 0) throw new HoldfastError('HF_UNKNOWN_WORKER', 'No worker is defined.')
    const started: Entry[] = []
    const starts = chosen.map(async (entry) => {
      if (await this.#start(entry)) started.push(entry)
    })
    const failed = (await Promise.allSettled(starts)).find((start) => start.status === 'rejected')
    if (failed === undefined) return
    await Promise.allSettled(started.map((entry) => this.#stop(entry, {})))
    for (const entry of started) entry.problem = 'It was stopped because another worker could not be started.'
    throw toError(failed.reason)
  }

  async stop(nameOrOptions?: string | StopOptions, options?: StopOptions): Promise<void> {
    const [name, given] =
      typeof nameOrOptions === 'string' ? [nameOrOptions, options] : [undefined, nameOrOptions]
    const how = readStopOptions(given, 'workers.stop()')
    await Promise.all(this.#choose(name).map((entry) => this.#stop(entry, how)))
  }

  status(): Promise<readonly WorkerStatus[]> {
    return this.#parts.status()
  }

  /** Workers that should be running and are not. */
  missing(): readonly WorkerVerdict[] {
    return [...this.#entries.values()].flatMap(({ name, problem }) =>
      problem === undefined ? [] : [{ name, id: null, healthy: false, problems: [problem] }],
    )
  }

  #choose(name: string | undefined): readonly Entry[] {
    if (name === undefined) return [...this.#entries.values()]
    const entry = this.#entries.get(name)
    if (entry !== undefined) return [entry]
    throw notFound('worker', name, [...this.#entries.keys()])
  }

  /** Whether this call started it. */
  async #start(entry: Entry): Promise<boolean> {
    if (entry.starting !== undefined) {
      await entry.starting
      return false
    }
    if (entry.worker !== undefined && this.#parts.isRunning(entry.worker.id)) return false
    entry.starting = this.#launch(entry)
    try {
      await entry.starting
      return true
    } finally {
      entry.starting = undefined
    }
  }

  async #launch(entry: Entry): Promise<void> {
    // Wait for one that is stopping, by stop() or its signal.
    await entry.worker?.stop()
    entry.problem = undefined
    try {
      entry.worker = await this.#parts.startWorker(entry.options)
    } catch (error) {
      entry.problem = `It could not be started: ${messageOf(error)}`
      throw named(entry.name, error)
    }
  }

  async #stop(entry: Entry, how: StopOptions): Promise<void> {
    await entry.starting?.catch(() => undefined)
    entry.problem = undefined
    await entry.worker?.stop(how)
  }

  /** Rejects invalid options at once; jobs may still be defined between here and start(). */
  #refuseBad(options: WorkOptions): void {
    try {
      readWorkOptions(this.#parts.core, options)
    } catch (error) {
      const mayCome = error instanceof HoldfastError && /^HF_NO_(JOBS|HANDLER)$/.test(error.code)
      if (!mayCome) throw error
    }
  }
}

function inContext(name: string, read: () => void): void {
  try {
    read()
  } catch (error) {
    throw named(name, error)
  }
}

/** Adds the worker's name to errors about its options or its start. */
function named(name: string, thrown: unknown): Error {
  if (!(thrown instanceof HoldfastError)) return toError(thrown)
  const { code, message, hint } = thrown
  return new HoldfastError(code, `Worker "${name}": ${message}`, { hint, cause: thrown })
}
