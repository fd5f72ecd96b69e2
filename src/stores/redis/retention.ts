/**
 * Deletes finished jobs beyond the retention. The number to keep applies to all queues together: with several shards,
 * each gets the number of its own jobs among those.
 */
import type { Retention } from '../store.ts'
import type { RedisValue } from './driver.ts'
import type { Run } from './run.ts'
import type { Shard } from './shards.ts'

interface Rule {
  readonly state: 'completed' | 'dead' | 'cancelled'
  readonly ms: number
  readonly max: number | null
}

export async function prune(
  run: Run,
  shards: readonly Shard[],
  retention: Retention,
  limit: number,
): Promise<number> {
  const rules = rulesOf(retention)
  const keeps = await Promise.all(rules.map((rule) => keepsOf(run, shards, rule, limit)))
  let pruned = 0
  for (const [index, shard] of shards.entries()) {
    if (pruned >= limit) break
    const kept = rules.flatMap(({ ms }, at): RedisValue[] => [ms, keeps[at]?.[index] ?? ''])
    pruned += await run<number>(shard, 'prune', [limit - pruned, ...kept])
  }
  return pruned
}

/** Number of jobs of a state that each shard keeps; null for all. */
async function keepsOf(
  run: Run,
  shards: readonly Shard[],
  { state, max }: Rule,
  limit: number,
): Promise<(number | null)[]> {
  if (max === null || shards.length === 1) return shards.map(() => max)
  const rows = await Promise.all(shards.map((shard) => run<number[]>(shard, 'oldest', [state, limit])))
  const counts = rows.map(([count = 0]) => count)
  const excess = Math.min(limit, counts.reduce((sum, count) => sum + count, 0) - max)
  const oldest = rows
    .flatMap(([, ...times], index) => times.map((at) => ({ at, index })))
    .sort((a, b) => a.at - b.at)
    .slice(0, Math.max(0, excess))
  return counts.map((count, index) => count - oldest.filter((one) => one.index === index).length)
}

function rulesOf(retention: Retention): readonly Rule[] {
  return [
    { state: 'completed', ms: retention.completedMs, max: retention.maxCompleted },
    { state: 'dead', ms: retention.deadMs, max: retention.maxDead },
    { state: 'cancelled', ms: retention.cancelledMs, max: retention.maxCancelled },
  ]
}
