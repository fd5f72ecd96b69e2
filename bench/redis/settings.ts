/**
 * Who runs, and how. The peers' numbers are those that did best of what was tried: 25, 50, 100 and 300 slots (BullMQ), 20,
 * 50, 100 and 200 (bee-queue), by the CPU time of a drained job; 1, 2 and 4 bulk calls at once, by the rate.
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
    /** No job stalls here, so nobody has to look. */
    worker: { concurrency: 50, skipStalledCheck: true },
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
    bulk: { size: 1_000, atOnce: 2 },
  },
} as const
