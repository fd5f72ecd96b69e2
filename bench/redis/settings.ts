/**
 * Who runs, and how. bee-queue drained as fast with 50 slots as it ever did when the store was designed. The other numbers
 * of the peers (BullMQ's concurrency, how many bulk calls at once) are chosen, not yet compared with others.
 */

export const PEERS = ['bullmq', 'bee-queue'] as const
export type RedisPeer = (typeof PEERS)[number]

const beeQueueQuiet = {
  getEvents: false,
  sendEvents: false,
  storeJobs: false,
  activateDelayedJobs: false,
} as const

export const SETTINGS = {
  holdfast: {
    throughput: { concurrency: 1_000 },
    latency: { concurrency: 1_000 },
  },
  bullmq: {
    worker: { concurrency: 100 },
    /** Of the worker, too: an option of each job would be stored with it. */
    withoutHistory: { removeOnComplete: { count: 0 } },
    /** addBulk() with so many jobs, so many calls at once. */
    bulk: { size: 1_000, atOnce: 4 },
  },
  'bee-queue': {
    producer: { ...beeQueueQuiet, isWorker: false },
    worker: { ...beeQueueQuiet, isWorker: true },
    concurrency: 50,
    withoutHistory: { removeOnSuccess: true },
    /** saveAll() with so many jobs, so many calls at once. */
    bulk: { size: 1_000, atOnce: 4 },
  },
} as const
