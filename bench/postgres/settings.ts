/** Who runs, and how: each at the settings that made it fastest on the machine where these were tried. */

export const PEERS = ['graphile-worker', 'pg-boss'] as const
export type Peer = (typeof PEERS)[number]
export type Contender = 'holdfast' | Peer

/** Where a library has one set of options for throughput and another for latency, it gets each where it counts. */
export type Aim = 'throughput' | 'latency'

export const SETTINGS = {
  holdfast: {
    throughput: { concurrency: 1_000 },
    latency: { concurrency: 200 },
  },
  'graphile-worker': {
    throughput: {
      concurrentJobs: 24,
      maxPoolSize: 10,
      localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
    latency: { concurrentJobs: 24, maxPoolSize: 10 },
    /** addJobs() with so many jobs, so many calls at once. */
    bulk: { size: 1_000, atOnce: 2 },
    singlePool: 10,
  },
  'pg-boss': {
    throughput: { batchSize: 1_000, localConcurrency: 2, burstWhenBatchFull: true },
    latency: { batchSize: 1_000, localConcurrency: 2, burstWhenBatchFull: true, notify: true },
    /** insert() with so many jobs, so many calls at once. */
    bulk: { size: 1_000, atOnce: 2 },
    queue: { partition: true },
    singlePool: 10,
  },
} as const
