/**
 * A shard is the unit of atomicity: its keys share one hash tag, and a script touches one shard only. A Redis without
 * Cluster is one shard, so that the contract holds exactly; on a cluster, each queue will be one, and `control` holds
 * what belongs to no queue.
 */

export interface Shard {
  /** What every script gets as KEYS: first the base that all names begin with. */
  readonly keys: readonly [base: string, ...others: string[]]
}

export interface Shards {
  readonly control: Shard
  of(queue: string): Shard
  all(): readonly Shard[]
}

export function oneShard(prefix: string): Shards {
  const only: Shard = { keys: [`${prefix}:{${prefix}}:`] }
  return { control: only, of: () => only, all: () => [only] }
}

/** Where wake-ups are published: one channel for all shards of a prefix. */
export function channelOf(prefix: string): string {
  return `${prefix}:wake`
}
