import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  inSlices,
  load,
  type EnqueueOptions,
  type Handler,
  type Library,
} from '../../contest/child/contender.ts'
import { NORMAL, type ChildConfig, type Payload } from '../../contest/protocol.ts'
import { directoryOf } from '../server.ts'
import { SETTINGS } from '../settings.ts'

const { workers, pollIntervall, bulk } = SETTINGS.plainjob
const TYPE = 'noop'

/** What we use of better-sqlite3 and plainjob. */
interface Sqlite {
  readonly default: new (path: string) => object
}

interface Module {
  readonly better: (database: object) => object
  readonly defineQueue: (options: object) => Queue
  readonly defineWorker: (
    type: string,
    run: (job: { readonly data: string }) => unknown,
    options: object,
  ) => Worker
}

interface Queue {
  add(type: string, data: Payload, options: { readonly delay: number }): unknown
  addMany(type: string, data: readonly Payload[], options: { readonly delay: number }): unknown
  close(): void
}

interface Worker {
  start(): Promise<void>
  stop(): Promise<void>
}

const silent = (): void => undefined
const logger = { error: silent, warn: silent, info: silent, debug: silent }

export async function plainjobLibrary({ url, aim }: ChildConfig): Promise<Library> {
  const { default: Database } = await load<Sqlite>('better-sqlite3')
  const { better, defineQueue, defineWorker } = await load<Module>('plainjob')
  const directory = directoryOf(url)
  mkdirSync(directory, { recursive: true })
  const queue = defineQueue({ connection: better(new Database(join(directory, 'plainjob.db'))), logger })
  const stops: (() => Promise<void>)[] = []
  const work = (handler: Handler, count: number, onCompleted: () => void): (() => Promise<void>) => {
    const run = ({ data }: { readonly data: string }): unknown => handler(JSON.parse(data) as Payload)
    const options = { queue, logger, pollIntervall: pollIntervall[aim], onCompleted }
    const all = Array.from({ length: count }, () => defineWorker(TYPE, run, options))
    const stop = async (): Promise<void> => void (await Promise.all(all.map((worker) => worker.stop())))
    for (const worker of all) worker.start().catch(raise)
    stops.push(stop)
    return stop
  }
  return {
    // Its tables were made with the queue.
    open: () => Promise.resolve(),
    enqueueMany: (payloads, options) =>
      inSlices(payloads, { size: bulk, atOnce: 1 }, async (slice) =>
        queue.addMany(TYPE, slice, delayOf(options)),
      ),
    enqueue: async (payload, options) => void queue.add(TYPE, payload, delayOf(options)),
    work: (handler, concurrency = workers) => Promise.resolve(work(handler, concurrency, silent)),
    async runFirstJob(handler) {
      await new Promise<void>((resolve) => {
        queue.add(TYPE, { pad: '' }, { delay: 0 })
        work(handler, workers, resolve)
      })
    },
    async close() {
      for (const stop of stops) await stop()
      queue.close()
    },
  }
}

/** It knows no priorities: better refused than left out. */
function delayOf({ level, delayMs }: EnqueueOptions): { readonly delay: number } {
  if (level !== NORMAL) throw new Error('plainjob gets no levels.')
  return { delay: delayMs }
}

/** A bench that goes on without its worker measures nothing. */
function raise(error: unknown): never {
  throw error
}
