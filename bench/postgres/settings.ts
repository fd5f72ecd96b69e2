/** Who runs, and how: each at the settings that made it fastest on the machine where they were tried. */

export const PEERS = ['graphile-worker', 'pg-boss'] as const
export type PostgresPeer = (typeof PEERS)[number]

const graphileWorker = {
  concurrentJobs: 24,
  maxPoolSize: 10,
  localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
} as const

const pgBoss = { batchSize: 1_000, localConcurrency: 2, burstWhenBatchFull: true } as const

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
} as const
