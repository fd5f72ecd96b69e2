/** Who runs, and how: each at the settings that made it fastest on the machine where they were tried. */

export const PEERS = ['graphile-worker', 'pg-boss', 'bullmq-pg'] as const
export type PostgresPeer = (typeof PEERS)[number]

const graphileWorker = {
  concurrentJobs: 24,
  maxPoolSize: 10,
  localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
} as const

const pgBoss = { batchSize: 1_000, localConcurrency: 2, burstWhenBatchFull: true } as const

/** BullMQ sends a statement for each job: it gets a part of each backlog, and takes longer for it. */
export const SHARES = { 'bullmq-pg': 1 / 15 } as const

export const SETTINGS = {
  holdfast: {
    throughput: { concurrency: 1_000 },
    latency: { concurrency: 1_000 },
  },
  'graphile-worker': {
    throughput: graphileWorker,
    latency: graphileWorker,
    /** addJobs() with so many jobs, so many calls at once. */
    bulk: { size: 1_000, atOnce: 4 },
    /** Of those who enqueue. */
    poolSize: 25,
  },
  'pg-boss': {
    throughput: { ...pgBoss, notify: false },
    latency: { ...pgBoss, notify: true },
    queue: { partition: true },
    /** insert() with so many jobs, so many calls at once. */
    bulk: { size: 1_000, atOnce: 4 },
    poolSize: 25,
  },
  'bullmq-pg': {
    /** No job stalls here, so nobody has to look. */
    worker: { concurrency: 50, skipStalledCheck: true },
    withoutHistory: { removeOnComplete: { count: 0 } },
    /** addBulk() with so many jobs, so many calls at once. */
    bulk: { size: 1_000, atOnce: 2 },
    poolSize: 25,
  },
} as const
