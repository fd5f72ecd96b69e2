/** Counts of queues come from deltas: after any number of concurrent changes they equal a recount of the tables. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../test/support/servers/database.ts'
import { until } from '../../../test/support/until.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import {
  cancelOne,
  changeJobs,
  COMPLETED,
  failure,
  newFlushId,
  newJob,
  newWorkerId,
  retry,
} from '../conformance/support.ts'
import type { Store } from '../store.ts'
import type { Settlement } from '../../job/settlement.ts'
import type { Executor } from './executor.ts'
import { readNames } from './names.ts'
import { pgExecutor } from './pg/pg-executor.ts'
import { sqlStore } from './sql-store.ts'

let database: Database
let executor: Executor
let store: Store
const storeParts = {
  names: readNames({}),
  clock: systemClock,
  random: systemRandom,
}

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  executor = pgExecutor({ connectionString: database.url, connections: 6 })
  store = sqlStore({ ...storeParts, executor, migrate: true })
  await store.open()
})

afterAll(async () => {
  await store.close()
  await database.drop()
})

const RECOUNT = `select queue, state, count(*)::integer as count from (
    select queue, state from holdfast.job union all select queue, state from holdfast.packed_job
  ) as job group by queue, state order by queue, state`

async function recount(): Promise<Record<string, Record<string, number>>> {
  const rows = await executor.query<{ queue: string; state: string; count: number }>(
    { name: 'recount', text: RECOUNT },
    [],
  )
  const counts: Record<string, Record<string, number>> = {}
  for (const { queue, state, count } of rows) (counts[queue] ??= {})[state] = count
  return counts
}

async function counted(): Promise<Record<string, Record<string, number>>> {
  const queues = await store.admin.queues()
  return Object.fromEntries(
    queues.map(({ queue, counts }) => [
      queue,
      Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0)),
    ]),
  )
}

const OUTCOMES: readonly Settlement[] = [
  COMPLETED,
  COMPLETED,
  retry(0),
  { type: 'dead', error: failure('no') },
  { type: 'release' },
  { type: 'cancelled', reason: null },
  { type: 'snooze', delayMs: 50, error: null },
]

async function work(round: number): Promise<void> {
  const worker = newWorkerId()
  await store.register(worker, 60_000)
  const queue = `q${round % 2}`
  for (let turn = 0; turn < 12; turn++) {
    const jobs = Array.from({ length: 20 }, (_, at) =>
      newJob({ queue, due: { inMs: at % 4 === 0 ? 20 : 0 } }),
    )
    await store.enqueue({ id: newFlushId(), jobs })
    const { leases } = await store.cycle({ worker, settle: [], claim: { queue, limit: 15, suspects: true } })
    const settle = leases.flatMap(({ token, jobs: held }) =>
      held.map((_, position) => ({
        token,
        position,
        settlement: OUTCOMES[(position + turn) % OUTCOMES.length]!,
        runMs: 1,
        forget: position % 5 === 0,
      })),
    )
    await store.cycle({ worker, settle: settle.slice(0, 9), claim: null })
    await store.cycle({ worker, settle: settle.slice(9), claim: null })
    await cancelOne(store, jobs[turn]!.id, null)
    await store.upkeep.promote(50)
    if (turn % 5 === 0) await changeJobs(store, { states: ['dead'] }, { type: 'replay' }, 3, null)
    if (turn % 6 === 0)
      await changeJobs(store, { states: ['completed', 'cancelled'] }, { type: 'discard' }, 5, null)
  }
  await executor.query({ name: 'compact', text: 'select holdfast.compact_counts(50, 0)' }, [])
}

test(
  'at rest the counts equal a recount, before and after they are compacted',
  { timeout: 60_000 },
  async () => {
    await Promise.all([1, 2, 3, 4, 5].map(work))
    expect(await counted()).toEqual(await recount())
    for (let left = 1; left > 0;) {
      const [row] = await executor.query<{ n: number }>(
        { name: 'compacted', text: 'select compacted as n from holdfast.compact_counts(200, 0)' },
        [],
      )
      left = row?.n ?? 0
    }
    expect(await counted()).toEqual(await recount())
    const lost = { completedMs: 0, deadMs: 0, cancelledMs: 0, maxCompleted: 3, maxDead: 3, maxCancelled: 3 }
    await store.upkeep.prune(lost, 7)
    expect(await counted()).toEqual(await recount())
  },
)

describe('changes that are not compacted', () => {
  async function addChanges(count: number, on = executor): Promise<void> {
    await on.script(
      `insert into holdfast.count_change (queue, ready) select 'many', 1 from generate_series(1, ${count})`,
    )
  }

  async function changes(): Promise<number> {
    const text = 'select count(*)::integer as n from holdfast.count_change'
    const [row] = await executor.query<{ n: number }>({ name: 'changes', text }, [])
    return row!.n
  }

  const fewerThan = (count: number, meanwhile?: () => Promise<unknown>): Promise<void> =>
    until('the changes to be compacted', async () => {
      await meanwhile?.()
      return (await changes()) < count
    })

  test('are caught up with by one call of the upkeep, if they are not too many', async () => {
    // Two statements, of which the first takes less than the call may take.
    await addChanges(30_000)
    const { upkeep } = sqlStore({ ...storeParts, executor, migrate: true })
    await upkeep.promote(1)
    expect(await changes(), 'those of the promotion').toBeLessThan(10)
  })

  test('are compacted by a process that only enqueues', { timeout: 60_000 }, async () => {
    for (let round = 0; round < 100; round++)
      await Promise.all(
        Array.from({ length: 20 }, () =>
          store.enqueue({ id: newFlushId(), jobs: [newJob({ queue: 'flushed' })] }),
        ),
      )
    await fewerThan(1_000)
  })

  test('are compacted by a process that only reads', async () => {
    await addChanges(50_000)
    const { admin } = sqlStore({ ...storeParts, executor, migrate: true })
    // Half a second of work at a time, once a second.
    await fewerThan(1, () => admin.queues())
  })

  test('are found without a look at those that an old transaction keeps', async () => {
    // In a database of its own: a compaction that another test began in the background would take the changes first.
    const own = await freshDatabase(sharedPostgres(18))
    const alone = pgExecutor({ connectionString: own.url })
    const ownStore = sqlStore({ ...storeParts, executor: alone, migrate: true })
    onTestFinished(async () => {
      await ownStore.close()
      await own.drop()
    })
    await ownStore.open()
    const blocks = async (from: number): Promise<number> => {
      const text = `explain (analyze, buffers, format json) select * from holdfast.compact_counts(100, ${from})`
      const [row] = await alone.query<{ 'QUERY PLAN': readonly [{ Plan: Record<string, number> }] }>(
        { name: `blocks ${from}`, text },
        [],
      )
      return row!['QUERY PLAN'][0].Plan['Shared Hit Blocks']!
    }
    await alone.transaction(async (old) => {
      await old.script('set transaction isolation level repeatable read; select txid_current()')
      await addChanges(100_000, alone)
      const compact = 'select block from holdfast.compact_counts(100000, 0)'
      const [row] = await alone.query<{ block: number }>({ name: 'compact all', text: compact }, [])
      await addChanges(10, alone)
      expect(await blocks(row!.block)).toBeLessThan(150)
      await addChanges(10, alone)
      expect(await blocks(0), 'from the start').toBeGreaterThan(500)
    })
  })
})
