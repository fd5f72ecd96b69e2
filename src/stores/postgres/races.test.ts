/** Steps of several processes that meet in the database. One side is played by hand, so that they meet where it matters. */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../test/support/servers/database.ts'
import { until } from '../../../test/support/until.ts'
import { withDeadline } from '../../std/deadline.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import {
  changeJobs,
  COMPLETED,
  newFlushId,
  newJob,
  newJobs,
  newWorkerId,
  retention,
  retry,
  uniqueWhile,
} from '../conformance/support.ts'
import type { Settlement } from '../../job/settlement.ts'
import type { Lease, Store } from '../store.ts'
import { readNames } from './names.ts'
import { pgExecutor } from './pg/pg-executor.ts'
import { sqlStore } from './sql-store.ts'

const CROWD = 16

let database: Database
let store: Store
let other: pg.Client

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  const executor = pgExecutor({ connectionString: database.url, connections: 20 })
  const parts = { names: readNames({}), clock: systemClock, random: systemRandom }
  store = sqlStore({ ...parts, executor, migrate: true })
  await store.open()
})

afterAll(async () => {
  await store.close()
  await database.drop()
})

beforeEach(async () => {
  other = new pg.Client({ connectionString: database.url })
  await other.connect()
})

afterEach(() => other.end())

/** Resolves when at least this many sessions wait for a lock. */
async function waiting(count: number): Promise<void> {
  const locks = `select distinct pid from pg_locks where not granted and pid <> pg_backend_pid()`
  await until('sessions to wait', async () => (await other.query(locks)).rows.length >= count)
}

describe('a unique key', () => {
  test('is replaced by each of many enqueues that meet the same waiting job', async () => {
    const unique = uniqueWhile('unfinished', 'mail.send crowd', 'replace')
    const first = newJob({ unique, payload: '"first"' })
    await store.enqueue({ id: newFlushId(), jobs: [first] })
    await other.query('begin')
    await other.query('select from holdfast.ready where id = $1 for update', [first.id])
    const answers = Promise.all(
      Array.from({ length: CROWD }, () => store.enqueue({ id: newFlushId(), jobs: [newJob({ unique })] })),
    )
    await waiting(6)
    await other.query('commit')
    expect((await answers).flat()).toEqual(
      Array.from({ length: CROWD }, () => ({ id: first.id, outcome: 'replaced' })),
    )
  })

  test('whose time ends while an enqueue waits for its job is taken by the enqueue', async () => {
    const unique = { key: 'mail.send short', hold: { forMs: 60_000 }, onConflict: 'replace' as const }
    const first = newJob({ unique })
    await store.enqueue({ id: newFlushId(), jobs: [first] })
    await other.query('begin')
    await other.query('select from holdfast.ready where id = $1 for update', [first.id])
    const second = newJob({ unique })
    const answer = store.enqueue({ id: newFlushId(), jobs: [second] })
    await waiting(1)
    await other.query(`delete from holdfast.unique_key where key = 'mail.send short'`)
    await other.query('commit')
    expect(await answer).toEqual([{ id: second.id, outcome: 'inserted' }])
    expect(await store.admin.get(first.id)).toMatchObject({ state: 'ready' })
  })
})

describe('the batch of a claim', () => {
  const worker = newWorkerId()
  beforeAll(() => store.register(worker, 600_000))

  async function claimed(queue: string): Promise<Lease> {
    await store.enqueue({ id: newFlushId(), jobs: newJobs(2, { queue }) })
    const { leases } = await store.cycle({ worker, settle: [], claim: { queue, limit: 2, suspects: true } })
    return leases[0]!
  }

  async function settle({ token }: Lease, position: number, settlement: Settlement): Promise<void> {
    const { settled } = await store.cycle({
      worker,
      settle: [{ token, position, settlement, runMs: 1 }],
      claim: null,
    })
    expect(settled).toEqual(['written'])
  }

  async function batches({ token }: Lease): Promise<number> {
    const { rows } = await other.query('select from holdfast.batch where token = $1', [token])
    return rows.length
  }

  test('goes with its last job if its history was forgotten before', async () => {
    const lease = await claimed('pruned')
    await settle(lease, 0, COMPLETED)
    await store.upkeep.prune(retention({ maxCompleted: 0 }), 100)
    expect(await batches(lease), 'while a job runs').toBe(1)
    await settle(lease, 1, retry())
    expect(await batches(lease)).toBe(0)
  })

  test('goes if two forget one half of its history each', async () => {
    const lease = await claimed('halves')
    await settle(lease, 0, COMPLETED)
    await settle(lease, 1, COMPLETED)
    await other.query('begin')
    await other.query('select holdfast.discard(array[$1::uuid], null)', [lease.jobs[0]!.id])
    const discarded = changeJobs(store, { ids: [lease.jobs[1]!.id] }, { type: 'discard' }, 1, null)
    await waiting(1)
    await other.query('commit')
    expect(await discarded).toMatchObject({ changed: 1 })
    expect(await batches(lease)).toBe(0)
  })
})

describe('a claim', () => {
  test('of a job whose payload somebody deleted leaves the job where it is', async () => {
    const worker = newWorkerId()
    await store.register(worker, 30_000)
    const job = newJob({ queue: 'robbed', payload: JSON.stringify('x'.repeat(10_000)) })
    await store.enqueue({ id: newFlushId(), jobs: [job] })
    await other.query('delete from holdfast.payload where id = $1', [job.id])
    const claim = { queue: 'robbed', limit: 1, suspects: true }
    await expect(store.cycle({ worker, settle: [], claim })).rejects.toMatchObject({
      code: 'HF_STORE_CONTRACT',
      message: expect.stringContaining('claimed 1 jobs with large payloads, but found 0 payloads'),
    })
    const { rowCount } = await other.query('delete from holdfast.ready where id = $1', [job.id])
    expect(rowCount).toBe(1)
  })
})

describe('a rescue', () => {
  test('leaves a worker alone whose heartbeat is under way', async () => {
    const late = newWorkerId()
    await store.register(late, 1)
    await store.enqueue({ id: newFlushId(), jobs: newJobs(1, { queue: 'late' }) })
    const claim = { queue: 'late', limit: 1, suspects: true }
    const { leases } = await store.cycle({ worker: late, settle: [], claim })
    await other.query('update holdfast.worker set expires_at = 0, lease_ms = 600000 where id = $1', [late])
    await other.query('begin')
    await other.query('select from holdfast.heartbeat($1, null, null, null, null)', [late])
    const rescued = await store.upkeep.rescue(100)
    await other.query('commit')
    expect(rescued).toEqual({ workers: [], jobs: [] })
    const settle = leases.map(({ token }) => ({ token, position: 0, settlement: COMPLETED, runMs: 1 }))
    expect((await store.cycle({ worker: late, settle, claim: null })).settled).toEqual(['written'])
  })
})

describe('partitions', () => {
  test('are made and dropped without making anybody wait for a long transaction', async () => {
    const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')
    const ahead = day(systemClock.now() + 3 * 86_400_000)
    for (const table of ['batch', 'history']) await other.query(`drop table holdfast.${table}_${ahead}`)
    for (const table of ['batch', 'history'])
      await other.query(
        `create table holdfast.${table}_20200101 partition of holdfast.${table} for values from (1577836800000) to (1577923200000)`,
      )
    await other.query('begin')
    await other.query('select from holdfast.batch, holdfast.history limit 1')
    await withDeadline(
      systemClock,
      5_000,
      store.upkeep.prune(retention({ completedMs: 86_400_000 }), 100),
      () => new Error('the upkeep waits'),
    )
    await other.query('commit')
    const names = async (): Promise<string[]> => {
      const { rows } = await other.query<{ name: string }>(
        `select relname as name from pg_class where relname ~ '^(batch|history)_(${ahead}|20200101)$' order by 1`,
      )
      return rows.map(({ name }) => name)
    }
    expect(await names(), 'nothing changed meanwhile').toEqual(['batch_20200101', 'history_20200101'])
    await store.upkeep.prune(retention({ completedMs: 86_400_000 }), 100)
    expect(await names(), 'later').toEqual([`batch_${ahead}`, `history_${ahead}`])
  })
})
