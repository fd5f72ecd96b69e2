/**
 * A shard is the unit of atomicity: its keys share one hash tag, and a script touches one shard only. A Redis without
 * Cluster is one shard, so that the contract holds exactly; on a cluster each queue is one, see `cluster/`.
 */

export interface Shard {
  /** What every script gets as KEYS: what the names of all its keys begin with. No key has that name alone. */
  readonly keys: readonly [base: string]
}

export interface Shards {
  /** The shard for everything that belongs to no queue. */
  readonly control: Shard
  of(queue: string): Shard
  /** All shards that can have jobs. */
  all(): Promise<readonly Shard[]>
  /** Makes sure that `all` returns these queues, before anything is written there. */
  know(queues: Iterable<string>): Promise<void>
}

export function oneShard(prefix: string): Shards {
  const only: Shard = { keys: [`${prefix}:{${prefix}}:`] }
  const all = Promise.resolve([only])
  const nothing = Promise.resolve()
  return { control: only, of: () => only, all: () => all, know: () => nothing }
}

/** Where wake-ups are published: one channel for all shards of a prefix. */
export function channelOf(prefix: string): string {
  return `${prefix}:wake`
}
