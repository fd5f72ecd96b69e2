import type { Random } from '../../std/random.ts'
import { FLUSH_MEMORY_MS, type Upkeep } from '../store.ts'
import { rescue } from './rescue.ts'
import { prune } from './retention.ts'
import type { Run } from './run.ts'
import type { Shard, Shards } from './shards.ts'

/** Longer than clients keep a sender for an unanswered flush. */
const SENDER_MEMORY_MS = 2 * FLUSH_MEMORY_MS
const MOST_SWEEPS = 50
const WORTH_MORE = 100

export function redisUpkeep(run: Run, shards: Shards, drain: () => Promise<void>, random: Random): Upkeep {
  /** Where the sweeps of each shard stand. */
  const cursors = new Map<Shard, readonly string[]>()
  return {
    async promote(limit) {
      await drain()
      return promote(run, shards, limit)
    },
    rescue: (limit) => rescue(run, shards, random, limit),
    async prune(retention, limit) {
      const all = await shards.all()
      const pruned = await prune(run, all, retention, limit)
      for (const shard of all)
        cursors.set(shard, await sweep(run, shard, cursors.get(shard) ?? ['0', '0', '0', '0']))
      return { pruned }
    },
    lead: async (candidate, ttlMs) =>
      (await run<number>(shards.control, 'lead', [candidate, Math.round(ttlMs)])) === 1,
  }
}

/** Continues as long as it finds much to delete. */
async function sweep(run: Run, shard: Shard, from: readonly string[]): Promise<readonly string[]> {
  let cursors = from
  for (let step = 0; step < MOST_SWEEPS; step++) {
    const [next, forgotten] = await run<[string[], number]>(shard, 'sweep', [...cursors, SENDER_MEMORY_MS])
    cursors = next
    if (forgotten < WORTH_MORE) break
  }
  return cursors
}

async function promote(
  run: Run,
  shards: Shards,
  limit: number,
): Promise<{ promoted: number; nextInMs: number | null }> {
  let promoted = 0
  let nextInMs: number | null = null
  for (const shard of await shards.all()) {
    const [moved, next] = await run<[number, string]>(shard, 'promote', [limit - promoted])
    promoted += moved
    if (next !== '') nextInMs = Math.min(nextInMs ?? Infinity, Number(next))
  }
  return { promoted, nextInMs }
}
