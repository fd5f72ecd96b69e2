import { inSlices, load, type Library } from '../../contest/child/contender.ts'
import type { ChildConfig, Payload } from '../../contest/protocol.ts'
import { SETTINGS } from '../settings.ts'
import { addressOf, QUEUE, raise, refuseSpecial } from './peer.ts'

const { worker: workerOptions, withoutHistory, bulk } = SETTINGS.bullmq

/** What we use of BullMQ. */
interface Module {
  readonly Queue: new (name: string, options: object) => Queue
  readonly Worker: new (
    name: string,
    run: (job: { readonly data: Payload }) => Promise<void>,
    options: object,
  ) => Connected
}

interface Connected {
  on(event: 'error', listener: (error: Error) => void): unknown
  waitUntilReady(): Promise<unknown>
  close(): Promise<void>
}

interface Queue extends Connected {
  add(name: string, data: Payload): Promise<unknown>
  addBulk(jobs: readonly { readonly name: string; readonly data: Payload }[]): Promise<unknown>
}

export async function bullmqLibrary({ url, history }: ChildConfig): Promise<Library> {
  const { Queue, Worker } = await load<Module>('bullmq')
  const connection = addressOf(url)
  const queue = new Queue(QUEUE, { connection })
  queue.on('error', raise)
  return {
    open: async () => void (await queue.waitUntilReady()),
    enqueueMany: (payloads, options) => {
      refuseSpecial(options)
      return inSlices(payloads, bulk, (slice) => queue.addBulk(slice.map((data) => ({ name: QUEUE, data }))))
    },
    enqueue: async (payload, options) => {
      refuseSpecial(options)
      await queue.add(QUEUE, payload)
    },
    work: async (handler, concurrency = workerOptions.concurrency) => {
      const worker = new Worker(QUEUE, async ({ data }) => handler(data), {
        connection,
        ...workerOptions,
        concurrency,
        ...(history ? {} : withoutHistory),
      })
      worker.on('error', raise)
      await worker.waitUntilReady()
      return () => worker.close()
    },
    close: () => queue.close(),
  }
}
