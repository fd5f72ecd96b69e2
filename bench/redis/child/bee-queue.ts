import { inSlices, load, type Library } from '../../contest/child/contender.ts'
import type { ChildConfig, Payload } from '../../contest/protocol.ts'
import { SETTINGS } from '../settings.ts'
import { addressOf, QUEUE, raise, refuseSpecial } from './peer.ts'

const { producer: producerOptions, worker: workerOptions, withoutHistory, bulk } = SETTINGS['bee-queue']
const STOP_MS = 30_000

/** What we use of bee-queue. */
interface Module {
  readonly default: new (name: string, settings: object) => Queue
}

interface Job {
  readonly data: Payload
  save(): Promise<unknown>
}

interface Queue {
  on(event: 'error', listener: (error: Error) => void): unknown
  ready(): Promise<unknown>
  createJob(data: Payload): Job
  /** Resolves to what could not be saved. */
  saveAll(jobs: readonly Job[]): Promise<ReadonlyMap<Job, Error>>
  process(concurrency: number, run: (job: Job) => Promise<void>): void
  close(timeoutMs: number): Promise<void>
}

export async function beeQueueLibrary({ url, history }: ChildConfig): Promise<Library> {
  const { default: BeeQueue } = await load<Module>('bee-queue')
  const make = (settings: object): Queue => {
    const queue = new BeeQueue(QUEUE, { redis: addressOf(url), ...settings })
    queue.on('error', raise)
    return queue
  }
  const producer = make(producerOptions)
  return {
    open: async () => void (await producer.ready()),
    enqueueMany: (payloads, options) => {
      refuseSpecial(options)
      return inSlices(payloads, bulk, async (slice) => {
        const refused = await producer.saveAll(slice.map((data) => producer.createJob(data)))
        for (const error of refused.values()) throw error
      })
    },
    enqueue: async (payload, options) => {
      refuseSpecial(options)
      await producer.createJob(payload).save()
    },
    work: async (handler, concurrency = SETTINGS['bee-queue'].concurrency) => {
      const worker = make({ ...workerOptions, ...(history ? {} : withoutHistory) })
      await worker.ready()
      worker.process(concurrency, async ({ data }) => handler(data))
      return () => worker.close(STOP_MS)
    },
    close: () => producer.close(STOP_MS),
  }
}
