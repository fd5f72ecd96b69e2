/** Who runs, and how. plainjob has few settings; see README.md for what was tried. */

export const PEERS = ['plainjob'] as const
export type SqlitePeer = (typeof PEERS)[number]

export const SETTINGS = {
  holdfast: {
    throughput: { concurrency: 1_000 },
    latency: { concurrency: 1_000 },
  },
  plainjob: {
    /** It sets `synchronous = normal` itself, and keeps what is done: neither can be chosen. */
    durability: 'normal',
    /** A worker runs one job at a time; with handlers that do not wait, more of them are not faster. */
    workers: 1,
    /** It only polls: often where latency counts, else as it comes. */
    pollIntervall: { throughput: 1_000, latency: 5 },
    /** addMany() with so many jobs: one transaction each. */
    bulk: 10_000,
  },
} as const

/** A commit of SQLite itself, as durable as ours. */
export const BARE = 'a bare commit'
