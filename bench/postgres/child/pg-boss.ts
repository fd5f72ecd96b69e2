import { inSlices, load, type EnqueueOptions, type Library } from '../../contest/child/contender.ts'
import { NORMAL, type ChildConfig, type Payload } from '../../contest/protocol.ts'
import { SETTINGS } from '../settings.ts'

const { throughput, latency, bulk, queue, poolSize } = SETTINGS['pg-boss']
const OPTIONS = { throughput, latency }
const QUEUE = 'noop'

/** What we use of pg-boss. */
interface Module {
  readonly PgBoss: new (options: object) => Boss
}

interface Boss {
  on(event: 'error', listener: (error: Error) => void): unknown
  start(): Promise<unknown>
  stop(options: { readonly graceful: boolean; readonly timeout?: number }): Promise<void>
  getQueue(name: string): Promise<object | null>
  createQueue(name: string, options: object): Promise<void>
  insert(name: string, jobs: readonly object[]): Promise<unknown>
  send(name: string, data: Payload, options: object): Promise<unknown>
  work(name: string, options: object, handler: (jobs: { data: Payload }[]) => Promise<void>): Promise<string>
  offWork(name: string, options: { readonly wait: boolean }): Promise<void>
}

export async function pgBossLibrary({ url, aim }: ChildConfig): Promise<Library> {
  const { PgBoss } = await load<Module>('pg-boss')
  const { notify, ...work } = OPTIONS[aim]
  // Its upkeep and its cron have their own connections and queries: left out of the figures.
  const boss = new PgBoss({
    connectionString: url,
    max: poolSize,
    supervise: false,
    schedule: false,
    useListenNotify: notify,
  })
  boss.on('error', (error) => {
    throw error
  })
  return {
    open: async () => {
      await boss.start()
      if ((await boss.getQueue(QUEUE)) === null) await boss.createQueue(QUEUE, { ...queue, notify })
    },
    enqueueMany: (payloads, options) =>
      inSlices(payloads, bulk, (slice) =>
        boss.insert(
          QUEUE,
          slice.map((data) => ({ data, ...specOf(options) })),
        ),
      ),
    enqueue: async (payload, options) => {
      await boss.send(QUEUE, payload, specOf(options))
    },
    work: async (handler, concurrency) => {
      const slots = concurrency === undefined ? {} : { batchSize: 1, localConcurrency: concurrency }
      await boss.work(QUEUE, { ...work, ...slots }, async (jobs) => {
        for (const { data } of jobs) {
          const running = handler(data)
          if (running !== undefined) await running
        }
      })
      return () => boss.offWork(QUEUE, { wait: true })
    },
    close: () => boss.stop({ graceful: false }),
  }
}

function specOf({ level, delayMs }: EnqueueOptions): object {
  return {
    ...(level === NORMAL ? {} : { priority: level - NORMAL }),
    ...(delayMs === 0 ? {} : { startAfter: Math.ceil(delayMs / 1_000) }),
  }
}
