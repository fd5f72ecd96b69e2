/** Upkeep in SQL: promote, rescue, prune, lead. */
import type { Clock } from '../../std/clock.ts'
import type { Random } from '../../std/random.ts'
import { FLUSH_MEMORY_MS, type Retention, type Upkeep } from '../store.ts'
import type { Executor } from './executor.ts'
import { rescue } from './rescue.ts'
import { DAYS_AHEAD } from './schema.ts'
import type { Statements } from './statements.ts'

/** Changes of counts that one statement adds up. */
const COUNTS_AT_ONCE = 20_000
/** Expired flushes, keys and notes that one statement deletes. */
const EXPIRED_AT_ONCE = 10_000
/** Statements that one prune spends on them. */
const EXPIRED_STEPS = 5
const TIDY_EVERY_MS = 1_000

export interface UpkeepParts {
  readonly executor: Executor
  readonly statements: Statements
  readonly random: Random
  readonly clock: Pick<Clock, 'monotonicMs'>
}

export function sqlUpkeep({ executor, statements, random, clock }: UpkeepParts): Upkeep {
  let tidiedMs = -Infinity
  /** With every promotion, but not more often than pays: a busy system writes thousands of these rows a second. */
  const tidy = async (): Promise<void> => {
    if (clock.monotonicMs() - tidiedMs < TIDY_EVERY_MS) return
    tidiedMs = clock.monotonicMs()
    await executor.query(statements.compactCounts, [COUNTS_AT_ONCE])
    await pruneExpired(executor, statements, 1)
  }
  return {
    async promote(limit) {
      await tidy()
      const [row] = await executor.query<{ promoted: number; next_in: number | null }>(statements.promote, [
        limit,
      ])
      return { promoted: row?.promoted ?? 0, nextInMs: row?.next_in ?? null }
    },
    rescue: (limit) => rescue(executor, statements, random, limit),
    async prune(retention, limit) {
      await pruneExpired(executor, statements, EXPIRED_STEPS)
      const dropped = await renewPartitions(executor, statements, retention)
      const [row] = await executor.query<{ pruned: number }>(statements.prune, [
        retention.completedMs,
        retention.deadMs,
        retention.cancelledMs,
        retention.maxCompleted,
        retention.maxDead,
        retention.maxCancelled,
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

async function pruneExpired(executor: Executor, statements: Statements, steps: number): Promise<void> {
  for (let step = 0; step < steps; step++) {
    const [row] = await executor.query<{ more: boolean }>(statements.pruneExpired, [
      FLUSH_MEMORY_MS,
      EXPIRED_AT_ONCE,
    ])
    if (row?.more !== true) return
  }
}

/** Whole days that are older than the retention go at once. */
async function renewPartitions(
  executor: Executor,
  statements: Statements,
  { completedMs }: Retention,
): Promise<number> {
  await executor.query(statements.makePartitions, [DAYS_AHEAD])
  const [row] = await executor.query<{ dropped: number }>(statements.dropPartitions, [completedMs])
  return row?.dropped ?? 0
}
