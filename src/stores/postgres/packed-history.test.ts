/** Completed jobs share rows: one row per settle, pointing at the batch that their claim wrote. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../test/support/servers/database.ts'
import { openSqlStore } from '../../../test/support/sql-stores.ts'
import { makeIds, type JobId } from '../../job/ids.ts'
import { systemClock } from '../../std/clock.ts'
import { seededRandom } from '../../std/random.ts'
import type { StoreUnderTest } from '../conformance/index.ts'
import {
  cancelOne,
  changeJobs,
  COMPLETED,
  Harness,
  MINUTE_MS,
  newFlushId,
  newJob,
  RELEASE,
  retention,
  retry,
} from '../conformance/support.ts'
import type { Lease, SettleRequest } from '../store.ts'
import type { Executor } from './executor.ts'
import { readNames, render, type Names } from './names.ts'
import { pgExecutor } from './pg/pg-executor.ts'

const LARGE = JSON.stringify('x'.repeat(2_000))

describe('jobs that were claimed together', () => {
  let database: Database
  let executor: Executor
  let under: StoreUnderTest
  let harness: Harness
  let names: Names
  beforeAll(async () => {
    database = await freshDatabase(sharedPostgres(18))
    executor = pgExecutor({ connectionString: database.url })
  })
  afterAll(async () => {
    await executor.close()
    await database.drop()
  })
  beforeEach(async () => {
    under = await openSqlStore({ executor, own: false })
    harness = new Harness(under)
    const [row] = await executor.query<{ schema: string }>(
      { name: 'schema', text: `select schemaname as schema from pg_tables where tablename = 'payload'` },
      [],
    )
    names = readNames({ schema: row!.schema })
    // A test that moved the clock on may have dropped today's.
    await executor.script(render('select holdfast.make_partitions(3, 100)', names))
    return () => under.close()
  })

  async function rowsIn(table: string): Promise<number> {
    const text = render(`select count(*) as n from holdfast.${table}`, names)
    const [row] = await executor.query<{ n: number }>({ name: `rows in ${table}`, text }, [])
    return row!.n
  }

  /** Enqueues and claims jobs, in order of their ids. */
  async function claimed(payloads: readonly string[], ids?: readonly JobId[]): Promise<Lease> {
    const jobs = payloads.map((payload, at) => newJob({ payload, ...(ids ? { id: ids[at]! } : {}) }))
    await harness.store.enqueue({ id: newFlushId(), jobs })
    const { leases } = await harness.cycle(await harness.worker(), [], { limit: 1_000 })
    return leases[0]!
  }

  async function complete(lease: Lease, positions: readonly number[], forget = false): Promise<void> {
    const record = await harness.record(lease.jobs[positions[0]!]!.id)
    const worker = record.state === 'running' ? record.worker : expect.fail('it runs')
    const settle = positions.map((position): SettleRequest => ({
      token: lease.token,
      position,
      settlement: { ...COMPLETED, type: 'completed', result: `"${position}"`, resultDropped: false },
      runMs: position,
      forget,
    }))
    await harness.cycle(worker, settle, null)
  }

  const idOf = (lease: Lease, position: number): JobId => lease.jobs[position]!.id

  test('have one row for each settle, and each job its own result and run time', async () => {
    const lease = await claimed(['0', '1', '2', LARGE, '4'])
    await complete(lease, [1, 3])
    await complete(lease, [0, 2, 4])
    expect([await rowsIn('history'), await rowsIn('batch'), await rowsIn('lease')]).toEqual([2, 1, 0])
    for (const [position, { id, payload }] of lease.jobs.entries())
      expect(await harness.record(id)).toMatchObject({
        state: 'completed',
        result: `"${position}"`,
        runMs: position,
        payload,
      })
  })

  test('are discarded one by one, and the last takes the rest with it', async () => {
    const lease = await claimed(['0', LARGE, '2'])
    await complete(lease, [0, 1, 2])
    for (const [count, position] of [1, 0, 2].entries()) {
      const { changed } = await changeJobs(
        harness.store,
        { ids: [idOf(lease, position)] },
        { type: 'discard' },
        1,
        null,
      )
      expect(changed).toBe(1)
      expect(await harness.store.admin.get(idOf(lease, position))).toBeNull()
      const [status] = await harness.store.admin.queues()
      expect(status?.counts.completed).toBe(2 - count)
    }
    for (const table of ['history', 'batch', 'payload']) expect(await rowsIn(table)).toBe(0)
  })

  test('keep their own results when their neighbours are forgotten', async () => {
    const lease = await claimed(['0', '1', '2', '3'])
    await complete(lease, [0, 1, 2, 3])
    await harness.store.upkeep.prune(retention({ maxCompleted: 2 }), 100)
    expect(await harness.store.admin.get(idOf(lease, 0))).toBeNull()
    expect(await harness.store.admin.get(idOf(lease, 1))).toBeNull()
    expect(await harness.record(idOf(lease, 2))).toMatchObject({ result: '"2"', runMs: 2 })
    expect(await harness.record(idOf(lease, 3))).toMatchObject({ result: '"3"', runMs: 3 })
  })

  test('are forgotten a part at a time, up to the limit of a prune', async () => {
    const lease = await claimed(['0', '1', LARGE, '3', '4'])
    await complete(lease, [0, 1, 2, 3, 4])
    await harness.advance(MINUTE_MS)
    const pruned: number[] = []
    for (let call = 0; call < 4; call++)
      pruned.push((await harness.store.upkeep.prune(retention({ completedMs: 1 }), 2)).pruned)
    expect(pruned).toEqual([2, 2, 1, 0])
    for (const table of ['history', 'batch', 'payload']) expect(await rowsIn(table)).toBe(0)
  })

  test('leave nothing if nothing is kept of them', async () => {
    const lease = await claimed(['0', LARGE, '2'])
    await complete(lease, [0, 1], true)
    expect(await rowsIn('payload')).toBe(0)
    await complete(lease, [2], true)
    for (const table of ['history', 'batch', 'lease', 'ended']) expect(await rowsIn(table)).toBe(0)
  })

  test('are found by id and listed in order, also those whose ids lie far from the others', async () => {
    const days = [0, 9, 10, 10, 10, 11, 40].map((day) => Date.UTC(2026, 0, 1) + day * 86_400_000)
    const far = days.map((ms, at) => makeIds({ now: () => ms }, seededRandom(at)).job())
    const lease = await claimed(
      far.map((_, at) => `${at}`),
      far,
    )
    const byAge = [...far].sort().reverse()
    const listed = async (): Promise<JobId[]> => {
      const { jobs } = await harness.store.admin.list({ limit: 100, after: null })
      return jobs.map(({ id }) => id)
    }
    expect(await listed(), 'while they run').toEqual(byAge)
    for (const id of far) expect(await harness.record(id)).toMatchObject({ state: 'running' })
    expect(await cancelOne(harness.store, far[6]!, null)).toBe('requested')
    await complete(lease, [0, 1, 2, 3, 4, 5, 6])
    expect(await listed(), 'when they are completed').toEqual(byAge)
    for (const id of far) expect(await harness.record(id)).toMatchObject({ state: 'completed' })
  })

  test('are listed and changed page by page, however their batches overlap', async () => {
    const random = seededRandom(7)
    const below = (count: number): number => Math.floor(random.float() * count)
    const start = systemClock.now() - 50_000
    const far = Array.from({ length: 600 }, (_, at) =>
      makeIds({ now: () => start + at * 80 }, seededRandom(at)).job(),
    )
    for (let at = 0; at < far.length; at += 200) {
      const jobs = far.slice(at, at + 200).map((id) => newJob({ id, priority: below(10), agingMs: 600_000 }))
      await harness.store.enqueue({ id: newFlushId(), jobs })
    }
    const worker = await harness.worker()
    for (;;) {
      const { leases } = await harness.cycle(worker, [], { limit: 20 })
      const [lease] = leases
      if (lease === undefined) break
      const outcomes = [COMPLETED, COMPLETED, retry(0), COMPLETED, RELEASE]
      const settle = lease.jobs
        .map((_, position): SettleRequest => {
          const settlement = outcomes[below(outcomes.length)]!
          return { token: lease.token, position, settlement, runMs: 1 }
        })
        .filter(() => below(10) > 0)
      await harness.cycle(worker, settle, null)
    }
    const listed: JobId[] = []
    for (let after: JobId | null = null, pages = 0; pages < 200; pages++) {
      const { jobs, next, looked } = await harness.store.admin.list({ limit: 7, after })
      expect(looked, 'two hundred of those that begin in the page, and of those that reach in').toBeLessThan(
        450,
      )
      listed.push(...jobs.map(({ id }) => id))
      after = next
      if (next === null) break
    }
    expect(listed).toEqual([...far].sort().reverse())
    const [before] = await harness.store.admin.queues()
    let changed = 0
    for (let after: JobId | null = null, pages = 0; pages < 200; pages++) {
      const page = await changeJobs(harness.store, { states: ['completed'] }, { type: 'discard' }, 9, after)
      changed += page.changed
      after = page.next
      if (page.next === null) break
    }
    expect(changed).toBe(before?.counts.completed)
    expect(await rowsIn('history')).toBe(0)
  })

  test('leave no batch if they were claimed on a day without a partition', async () => {
    await harness.advance(10 * 86_400_000)
    const lease = await claimed(['0', '1'])
    await harness.advance(86_400_000)
    await harness.store.upkeep.prune(retention(), 100)
    await complete(lease, [0, 1])
    await harness.advance(3 * 86_400_000)
    for (let call = 0; call < 2; call++)
      await harness.store.upkeep.prune(retention({ completedMs: 86_400_000 }), 100)
    expect([await rowsIn('history'), await rowsIn('batch')]).toEqual([0, 0])
  })

  test('of a day that nobody keeps go with their partitions, whatever ran for longer', async () => {
    const long = await claimed(['long'])
    await harness.advance(86_400_000)
    const lease = await claimed(['0', '1'])
    await complete(lease, [0, 1])
    await harness.advance(3 * 86_400_000)
    await harness.store.upkeep.prune(retention({ completedMs: 86_400_000 }), 100)
    expect(await rowsIn('batch')).toBe(1)
    await complete(long, [0])
    expect(await harness.record(idOf(long, 0))).toMatchObject({ state: 'completed' })
  })

  test('of a day that nobody keeps go with their partitions', async () => {
    const lease = await claimed(['0', '1'])
    await complete(lease, [0, 1])
    await harness.advance(3 * 86_400_000)
    expect(await harness.store.upkeep.prune(retention({ completedMs: 86_400_000 }), 100)).toEqual({
      pruned: 2,
    })
    await harness.store.upkeep.prune(retention({ completedMs: 86_400_000 }), 100)
    expect([await rowsIn('history'), await rowsIn('batch')]).toEqual([0, 0])
    const [status] = await harness.store.admin.queues()
    expect(status?.counts.completed).toBe(0)
  })
})
