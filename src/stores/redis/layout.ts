/** What differs between a Redis that is one shard and a cluster of many. */
import type { Schedules } from '../store.ts'
import type { Run } from './run.ts'
import { fireAtOnce } from './schedules.ts'
import { oneShard, type Shards } from './shards.ts'
import { Sequence, ShardWorkerCalls, type WorkerCalls } from './worker-calls.ts'

export interface Layout {
  readonly shards: Shards
  readonly workerCalls: WorkerCalls
  readonly fire: Schedules['fire']
  /** Brings on its way what got stuck between two shards. */
  readonly drain: () => Promise<void>
}

export function oneShardLayout(prefix: string, run: Run, channel: () => string | null): Layout {
  const shards = oneShard(prefix)
  return {
    shards,
    workerCalls: new ShardWorkerCalls(run, shards.control, new Sequence(), channel),
    fire: fireAtOnce(run, shards),
    drain: () => Promise.resolve(),
  }
}
