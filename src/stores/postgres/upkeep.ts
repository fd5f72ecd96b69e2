/** Upkeep in SQL: promote, rescue, prune, lead. */
import type { Clock } from '../../std/clock.ts'
import type { Random } from '../../std/random.ts'
import { FLUSH_MEMORY_MS, type Retention, type Upkeep } from '../store.ts'
import type { Counts } from './counts.ts'
import type { Executor } from './executor.ts'
import { rescue } from './rescue.ts'
import { ScanCursor } from './scan-cursor.ts'
import { DAYS_AHEAD } from './schema.ts'
import type { Statements } from './statements.ts'

/** Expired flushes, keys and notes that one statement deletes. */
const EXPIRED_AT_ONCE = 10_000
/** Number of such statements in one prune. */
const EXPIRED_STEPS = 5
const TIDY_EVERY_MS = 1_000
/** A prune starts no further drop after this long, because a partition may have to be read first. */
const DROPS_MS = 5_000
/** Batches of the default partition that one prune looks at. */
const REST_AT_ONCE = 1_000

export interface UpkeepParts {
  readonly executor: Executor
  readonly statements: Statements
  readonly counts: Counts
  readonly random: Random
  readonly clock: Pick<Clock, 'monotonicMs'>
}

export function sqlUpkeep(parts: UpkeepParts): Upkeep {
  const { executor, statements, counts, random, clock } = parts
  const partitions = new Partitions(parts)
  const flushes = new ScanCursor(clock)
  let tidiedMs = -Infinity
  const pruneExpired = async (steps: number): Promise<void> => {
    for (let step = 0, more = true; more && step < steps; step++)
      await flushes.run(async (from) => {
        const values = [FLUSH_MEMORY_MS, EXPIRED_AT_ONCE, from]
        const [row] = await executor.query<{ more: boolean; next: number | null }>(
          statements.pruneExpired,
          values,
        )
        more = row?.more === true
        return row?.next ?? null
      })
  }
  /** Called with every promotion, but limited: a busy system writes thousands of these rows per second. */
  const tidy = async (): Promise<void> => {
    if (clock.monotonicMs() - tidiedMs < TIDY_EVERY_MS) return
    tidiedMs = clock.monotonicMs()
    await counts.catchUp()
    await pruneExpired(1)
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
      await pruneExpired(EXPIRED_STEPS)
      const dropped = await partitions.renew(retention)
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
      if (ttlMs <= 0) {
        await executor.query(statements.stepDown, [candidate])
        return false
      }
      const [row] = await executor.query<{ leads: boolean }>(statements.lead, [candidate, Math.round(ttlMs)])
      return row?.leads === true
    },
  }
}

/** Daily partitions: each is made or dropped by a transaction of its own, because its locks stop claims and settles. */
class Partitions {
  readonly #executor: Executor
  readonly #statements: Statements
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** Token of the last batch in the default partition that was looked at. */
  #lastBatch = 0

  constructor({ executor, statements, clock }: UpkeepParts) {
    this.#executor = executor
    this.#statements = statements
    this.#clock = clock
  }

  /** Returns how many completed jobs were dropped, together with their day. */
  async renew({ completedMs }: Retention): Promise<number> {
    await this.#make()
    const dropped = await this.#drop(completedMs)
    const values = [completedMs, this.#lastBatch, REST_AT_ONCE]
    const [row] = await this.#executor.query<{ last: number | null }>(this.#statements.pruneBatchRest, values)
    this.#lastBatch = row?.last ?? 0
    return dropped
  }

  async #make(): Promise<void> {
    // Two tables, and today besides the days ahead.
    for (let most = 2 * (DAYS_AHEAD + 1); most > 0; most--) {
      const [row] = await this.#executor.query<{ made: number }>(this.#statements.makePartition, [DAYS_AHEAD])
      if (row?.made !== 1) return
    }
  }

  async #drop(completedMs: number): Promise<number> {
    const old = await this.#executor.query<{ name: string }>(this.#statements.oldPartitions, [completedMs])
    const untilMs = this.#clock.monotonicMs() + DROPS_MS
    let dropped = 0
    for (const { name } of old) {
      if (this.#clock.monotonicMs() > untilMs) break
      const [row] = await this.#executor.query<{ dropped: number | null }>(this.#statements.dropPartition, [
        name,
      ])
      // A long transaction holds the lock: other sessions would queue behind each further try.
      if (row === undefined || row.dropped === null) break
      dropped += row.dropped
    }
    return dropped
  }
}
