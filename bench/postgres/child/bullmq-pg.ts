/** BullMQ on PostgreSQL instead of Redis. */
import { inSlices, load, type EnqueueOptions, type Library } from '../../contest/child/contender.ts'
import { NORMAL, type ChildConfig, type Payload } from '../../contest/protocol.ts'
import { SETTINGS } from '../settings.ts'

const { worker: workerOptions, withoutHistory, bulk, poolSize } = SETTINGS['bullmq-pg']
const QUEUE = 'noop'

/** What we use of BullMQ. */
interface Module {
  readonly createPostgresBackend: object
  readonly Queue: new (name: string, options: object, backend: object) => Queue
  readonly Worker: new (
    name: string,
    run: (job: { readonly data: Payload }) => Promise<void>,
    options: object,
    backend: object,
  ) => Connected
}

interface Connected {
  on(event: 'error', listener: (error: Error) => void): unknown
  waitUntilReady(): Promise<unknown>
  close(): Promise<void>
}

interface Queue extends Connected {
  add(name: string, data: Payload, options: object): Promise<unknown>
  addBulk(jobs: readonly object[]): Promise<unknown>
}

export async function bullmqPgLibrary({ url, history }: ChildConfig): Promise<Library> {
  const { Queue, Worker, createPostgresBackend } = await load<Module>('bullmq')
  const connection = { connectionString: url, max: poolSize }
  const queue = new Queue(QUEUE, { connection: { ...connection, migrate: true } }, createPostgresBackend)
  queue.on('error', raise)
  return {
    open: async () => void (await queue.waitUntilReady()),
    enqueueMany: (payloads, options) =>
      inSlices(payloads, bulk, (slice) =>
        queue.addBulk(slice.map((data) => ({ name: QUEUE, data, opts: specOf(options) }))),
      ),
    enqueue: async (payload, options) => {
      await queue.add(QUEUE, payload, specOf(options))
    },
    work: async (handler, concurrency = workerOptions.concurrency) => {
      const options = { connection, ...workerOptions, concurrency, ...(history ? {} : withoutHistory) }
      const worker = new Worker(QUEUE, async ({ data }) => handler(data), options, createPostgresBackend)
      worker.on('error', raise)
      await worker.waitUntilReady()
      return () => worker.close()
    },
    close: () => queue.close(),
  }
}

/** Its jobs without a priority go first: levels are refused rather than turned around. */
function specOf({ level, delayMs }: EnqueueOptions): object {
  if (level !== NORMAL) throw new Error('BullMQ on PostgreSQL gets no levels.')
  return delayMs === 0 ? {} : { delay: delayMs }
}

/** A bench that goes on without its server measures nothing. */
function raise(error: Error): never {
  throw error
}
