/**
 * Claims that find nothing, under an old open transaction: the rows of every job that was ever claimed are still in the
 * index, and no claim may read them all over and over.
 */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../test/support/servers/database.ts'
import { eventually } from '../../../test/support/until.ts'
import type { WorkerId } from '../../job/ids.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import {
  COMPLETED,
  CONFIRM,
  newFlushId,
  newJobs,
  newWorkerId,
  QUEUE,
  RELEASE,
} from '../conformance/support.ts'
import type { ClaimRequest, Lease, SettleRequest, Store } from '../store.ts'
import { readNames } from './names.ts'
import { pgExecutor } from './pg/pg-executor.ts'
import { sqlStore } from './sql-store.ts'

const DEAD_ROWS = 6_000
const CLAIMS = 50
const CLAIM: ClaimRequest = { queue: QUEUE, limit: 100, suspects: true }

let database: Database
let old: pg.Client
let pool: pg.Pool
let store: Store
let worker: WorkerId
const others: pg.Pool[] = []
const stores: Store[] = []

async function prepare(): Promise<void> {
  database = await freshDatabase(sharedPostgres(18))
  ;({ pool, store, worker } = await openStore({ migrate: true }))
  await pool.query('alter table holdfast.ready set (autovacuum_enabled = off)')
  old = new pg.Client({ connectionString: database.url })
  await old.connect()
  await old.query('begin isolation level repeatable read; select txid_current()')
  for (let done = 0; done < DEAD_ROWS; done += 1_000) {
    await store.enqueue({ id: newFlushId(), jobs: newJobs(1_000) })
    const [lease] = await claim([], { ...CLAIM, limit: 1_000 })
    await claim(settlesOf(lease!, { settlement: COMPLETED }), null)
  }
  // Claims read what is newer than a second, because enqueues of that age may be on their way.
  await eventually(async () => {
    const { rows } = await pool.query<{ age: string }>(
      'select holdfast.now_ms() - max(claimed_at) as age from holdfast.batch',
    )
    expect(Number(rows[0]?.age)).toBeGreaterThan(1_000)
  })
}

async function cleanUp(): Promise<void> {
  await old.end()
  for (const one of stores.splice(0)) await one.close()
  for (const one of others.splice(0)) await one.end()
  await database.drop()
}

/** On one connection, so that its statistics can be read; `hears`: wake-ups arrive on another one. */
async function openStore({ hears = true, migrate = false } = {}): Promise<{
  pool: pg.Pool
  store: Store
  worker: WorkerId
}> {
  const lent = new pg.Pool({ connectionString: database.url, max: 1 })
  // The database may go before the pool has heard that its connection is closed.
  lent.on('error', () => undefined)
  const executor = pgExecutor({ pool: lent, ...(hears ? { connectionString: database.url } : {}) })
  const names = readNames({})
  const parts = { names, clock: systemClock, random: systemRandom }
  const opened = sqlStore({ ...parts, executor, migrate })
  others.push(lent)
  stores.push(opened)
  await opened.open()
  await opened.subscribe(() => undefined)
  const id = newWorkerId()
  await opened.register(id, 60_000)
  return { pool: lent, store: opened, worker: id }
}

async function claim(
  settle: readonly SettleRequest[],
  request: ClaimRequest | null,
): Promise<readonly Lease[]> {
  return (await store.cycle({ worker, settle, claim: request })).leases
}

function settlesOf(
  { token, jobs }: Lease,
  parts: Pick<SettleRequest, 'settlement' | 'job'>,
): SettleRequest[] {
  return jobs.map((_, position) => ({ token, position, runMs: 1, ...parts }))
}

/** Index entries of a table that the connection read meanwhile, those of deleted rows too. */
async function reads(work: () => Promise<void>, table = 'ready'): Promise<number> {
  const before = await readsSoFar(table)
  await work()
  return (await readsSoFar(table)) - before
}

async function readsSoFar(table: string): Promise<number> {
  await pool.query('select pg_stat_force_next_flush()')
  const { rows } = await pool.query<{ reads: string }>(
    `select sum(idx_tup_read) as reads from pg_stat_user_indexes where schemaname = 'holdfast' and relname = $1`,
    [table],
  )
  return Number(rows[0]?.reads)
}

/** One claim in three may sweep. On an idle machine one does; sweeps go by time, so a loaded one sees more of them. */
const FEW = (CLAIMS * DEAD_ROWS) / 3

describe('under an old open transaction, not every claim reads every deleted row', () => {
  // Together, because preparing takes longer than the tests: each leaves an empty queue.
  beforeAll(prepare, 30_000)
  afterAll(cleanUp)

  test('if jobs are given back with each call', async () => {
    await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
    let [lease] = await claim([], CLAIM)
    const read = await reads(async () => {
      for (let turn = 0; turn < CLAIMS; turn++) {
        const { jobs } = lease!
        ;[lease] = await claim(settlesOf(lease!, { settlement: RELEASE, job: jobs[0]! }), CLAIM)
        expect(lease?.jobs.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id))
      }
    })
    expect(read).toBeLessThan(FEW)
    await claim(settlesOf(lease!, { settlement: COMPLETED }), null)
  })

  test('if each call confirms a commit', async () => {
    await store.enqueue({ id: newFlushId(), jobs: newJobs(2) })
    const [lease] = await claim([], CLAIM)
    const [settle, last] = settlesOf(lease!, { settlement: COMPLETED })
    await claim([settle!], null)
    const read = await reads(async () => {
      for (let turn = 0; turn < CLAIMS; turn++)
        expect(await claim([{ ...settle!, settlement: CONFIRM, job: lease!.jobs[0]! }], CLAIM)).toEqual([])
    })
    expect(read).toBeLessThan(FEW)
    await claim([last!], null)
  })

  test.for([
    ['has wake-ups', true],
    ['has no wake-ups', false],
  ] as const)('if the queue never gave this process a job, and it %s', async ([, hears]) => {
    ;({ pool, store, worker } = await openStore({ hears }))
    const read = await reads(async () => {
      for (let turn = 0; turn < CLAIMS; turn++) expect(await claim([], CLAIM)).toEqual([])
    })
    expect(read).toBeLessThan(FEW)
  })

  test('if no wake-ups arrive', async () => {
    ;({ pool, store, worker } = await openStore({ hears: false }))
    await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
    const [lease] = await claim([], CLAIM)
    expect(lease?.jobs).toHaveLength(1)
    const read = await reads(async () => {
      for (let turn = 0; turn < CLAIMS; turn++) expect(await claim([], CLAIM)).toEqual([])
    })
    expect(read).toBeLessThan(FEW)
  })
})

describe('under an old open transaction, a job that no wake-up told of', () => {
  const MANY = 60_000
  const STRAY = newJobs(1)[0]!.id
  beforeAll(prepare, 30_000)
  afterAll(cleanUp)

  test('is found by looks beside the claims, once sweeps cost a claim too much', async () => {
    for (let done = 0; done < MANY; done += 1_000) {
      await store.enqueue({ id: newFlushId(), jobs: newJobs(1_000) })
      const [lease] = await claim([], { ...CLAIM, limit: 1_000 })
      await claim(settlesOf(lease!, { settlement: COMPLETED }), null)
    }
    await pool.query(`set track_functions = 'pl'`)
    const looks = async (): Promise<number> => {
      await pool.query('select pg_stat_force_next_flush()')
      const { rows } = await pool.query<{ calls: string | null }>(
        `select sum(calls) as calls from pg_stat_user_functions where funcname = 'overlooked'`,
      )
      return Number(rows[0]?.calls ?? 0)
    }
    await eventually(async () => {
      expect(await claim([], CLAIM)).toEqual([])
      expect(await looks()).toBeGreaterThan(0)
    })
    await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
    // Among the dead rows, and without a notice.
    await pool.query(
      `insert into holdfast.ready select $1::uuid, rank - 2000, due_at - 2000, created_at, attempt, crashes, lane, priority,
        queue, name, unique_hold, unique_key, past, replace(facts, id::text, $1::text), payload from holdfast.ready`,
      [STRAY],
    )
    const found: string[] = []
    await eventually(async () => {
      const leases = await claim([], { ...CLAIM, limit: 1 })
      found.push(...leases.flatMap(({ jobs }) => jobs.map(({ id }) => id)))
      expect(found).toContain(STRAY)
    })
    expect(found).toHaveLength(2)
  })
})

describe('under an old open transaction, a settle', () => {
  const LEASES = 150
  beforeAll(prepare, 30_000)
  afterAll(cleanUp)

  test('does not read the leases that its worker had before', async () => {
    await store.enqueue({ id: newFlushId(), jobs: newJobs(3 * LEASES) })
    let [lease] = await claim([], { ...CLAIM, limit: 1 })
    const settleAll = async (): Promise<void> => {
      for (let turn = 1; turn < LEASES; turn++)
        [lease] = await claim(settlesOf(lease!, { settlement: COMPLETED }), { ...CLAIM, limit: 1 })
    }
    await settleAll()
    expect(await reads(settleAll, 'lease'), 'never analysed').toBeLessThan(10 * LEASES)
    await pool.query('analyze holdfast.lease')
    expect(await reads(settleAll, 'lease'), 'analysed').toBeLessThan(10 * LEASES)
  })
})
