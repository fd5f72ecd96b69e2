/** Upkeep in SQL: promote, rescue, prune, lead. */
import type { Random } from '../../std/random.ts'
import { FLUSH_MEMORY_MS, type Retention, type Upkeep } from '../store.ts'
import type { Executor } from './executor.ts'
import { rescue } from './rescue.ts'
import type { Statements } from './statements.ts'

/** Partitions are made for today and so many days more, so that an upkeep that pauses over a weekend is no trouble. */
const DAYS_AHEAD = 3

export function sqlUpkeep(executor: Executor, statements: Statements, random: Random): Upkeep {
  return {
    async promote(limit) {
      const [row] = await executor.query<{ promoted: number; next_in: number | null }>(statements.promote, [
        limit,
      ])
      return { promoted: row?.promoted ?? 0, nextInMs: row?.next_in ?? null }
    },
    rescue: (limit) => rescue(executor, statements, random, limit),
    async prune(retention, limit) {
      const dropped = await renewPartitions(executor, statements, retention)
      const [row] = await executor.query<{ pruned: number }>(statements.prune, [
        retention.completedMs,
        retention.deadMs,
        retention.cancelledMs,
        retention.maxCompleted,
        retention.maxDead,
        retention.maxCancelled,
        FLUSH_MEMORY_MS,
        limit,
      ])
      return { pruned: dropped + (row?.pruned ?? 0) }
    },
    async lead(candidate, ttlMs) {
      const [row] = await executor.query<{ leads: boolean }>(statements.lead, [candidate, Math.round(ttlMs)])
      return row?.leads === true
    },
    async resign(candidate) {
      await executor.query(statements.resign, [candidate])
    },
  }
}

/** Whole days that nobody keeps any more go at once; a count would have to look into them. */
async function renewPartitions(
  executor: Executor,
  statements: Statements,
  { completedMs, cancelledMs }: Retention,
): Promise<number> {
  await executor.query(statements.makePartitions, [DAYS_AHEAD])
  const [row] = await executor.query<{ dropped: number }>(statements.dropPartitions, [
    Math.max(completedMs, cancelledMs),
  ])
  return row?.dropped ?? 0
}
