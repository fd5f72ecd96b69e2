/** Daily partitions come and go while others work. */
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../test/support/servers/database.ts'
import { systemClock } from '../../std/clock.ts'
import { withDeadline } from '../../std/deadline.ts'
import { systemRandom } from '../../std/random.ts'
import { DAY_MS, retention } from '../conformance/support.ts'
import type { Store } from '../store.ts'
import { readNames } from './names.ts'
import { pgExecutor } from './pg/pg-executor.ts'
import { sqlStore } from './sql-store.ts'

/** The first of the old days. */
const OLD_MS = Date.UTC(2020, 0, 1)
const KEEP_A_DAY = retention({ completedMs: DAY_MS })

let database: Database
let store: Store
let other: pg.Client

beforeEach(async () => {
  database = await freshDatabase(sharedPostgres(18))
  const executor = pgExecutor({ connectionString: database.url, connections: 2 })
  const parts = { names: readNames({}), clock: systemClock, random: systemRandom }
  store = sqlStore({ ...parts, executor, migrate: true })
  await store.open()
  other = new pg.Client({ connectionString: database.url })
  await other.connect()
})

afterEach(async () => {
  await other.end()
  await store.close()
  await database.drop()
})

const nameOf = (table: string, ms: number): string =>
  `${table}_${new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')}`

async function oldDays(days: number): Promise<void> {
  for (let day = 0; day < days; day++)
    for (const table of ['batch', 'history']) {
      const from = OLD_MS + day * DAY_MS
      await other.query(`create table holdfast.${nameOf(table, from)} partition of holdfast.${table}
        for values from (${from}) to (${from + DAY_MS})`)
    }
  await other.query(`insert into holdfast.history (finished_at, token, claimed_at, worker, size, has_large, queue, run_ms)
    select ${OLD_MS} + day * ${DAY_MS}, day + 1, ${OLD_MS} + day * ${DAY_MS}, gen_random_uuid(), 1, false, 'old', '{1}'
    from generate_series(0, ${days - 1}) as day`)
  await addBatches('day + 1', `${OLD_MS} + day * ${DAY_MS}`, `generate_series(0, ${days - 1}) as day`)
}

async function addBatches(token: string, claimedAt: string, from: string): Promise<void> {
  await other.query(`insert into holdfast.batch (token, claimed_at, size, has_large, wide, low, high, queue, first_name, last_name, ids,
      jobs, payloads)
    select ${token}, ${claimedAt}, 1, false, false, id, id, 'old', 'job', 'job', array[id], '[]', ''
    from ${from} cross join lateral (select gen_random_uuid() as id) as made`)
}

async function partitions(): Promise<string[]> {
  const { rows } = await other.query<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relname ~ '^(batch|history)_\\d{8}$' order by 1`,
  )
  return rows.map(({ name }) => name)
}

/** Whether somebody waits for a lock, and who may not be waited for meanwhile. */
async function locks(): Promise<{ waiting: boolean; stopped: string[] }> {
  const { rows } = await other.query<{ waiting: boolean; stopped: string[] }>(`select
    coalesce(bool_or(not granted), false) as waiting,
    coalesce(array_agg(relation::regclass::text) filter (where granted and mode = 'AccessExclusiveLock'
      and relation in ('holdfast.batch'::regclass, 'holdfast.history'::regclass)), '{}') as stopped
    from pg_locks where pid <> pg_backend_pid() and locktype = 'relation'`)
  return rows[0]!
}

async function untilWaiting(): Promise<Awaited<ReturnType<typeof locks>>> {
  const look = async (): Promise<Awaited<ReturnType<typeof locks>>> => {
    for (;;) {
      const seen = await locks()
      if (seen.waiting) return seen
    }
  }
  return withDeadline(systemClock, 10_000, look(), () => new Error('nobody waited'))
}

describe('days that nobody keeps', () => {
  test('are dropped one by one: claims and settles never wait for the next one', async () => {
    await oldDays(4)
    const writer = new pg.Client({ connectionString: database.url })
    await writer.connect()
    await writer.query('begin')
    await writer.query(`lock table holdfast.${nameOf('history', OLD_MS + DAY_MS)} in row exclusive mode`)
    const pruned = store.upkeep.prune(KEEP_A_DAY, 1)
    expect((await untilWaiting()).stopped, 'locked while the second day is waited for').toEqual([])
    await writer.query('rollback')
    await writer.end()
    expect((await pruned).pruned).toBeGreaterThanOrEqual(1)
    await store.upkeep.prune(KEEP_A_DAY, 100)
    expect((await partitions()).filter((name) => name.includes('_2020'))).toEqual([])
    expect(await store.admin.queues()).toMatchObject([{ queue: 'old', counts: { completed: -4 } }])
  })

  test('stay as long as a lease or history refers to one of their batches', async () => {
    await oldDays(2)
    await other.query(`insert into holdfast.lease (token, claimed_at, worker, keyed, has_large, queue, done)
      values (1, ${OLD_MS}, gen_random_uuid(), false, false, 'old', B'0')`)
    await store.upkeep.prune(KEEP_A_DAY, 100)
    expect((await partitions()).filter((name) => name.includes('_2020'))).toEqual([nameOf('batch', OLD_MS)])
  })
})

describe('batches in the default partition', () => {
  test('are deleted a portion at a time once their history is gone, also behind some that stay', async () => {
    await addBatches('number', `${OLD_MS} + number`, 'generate_series(1, 2500) as number')
    await other.query(`insert into holdfast.lease (token, claimed_at, worker, keyed, has_large, queue, done)
      select number, ${OLD_MS} + number, gen_random_uuid(), false, false, 'old', B'0' from generate_series(1, 1000) as number`)
    const left = async (): Promise<number> => {
      await store.upkeep.prune(KEEP_A_DAY, 100)
      const { rows } = await other.query<{ n: number }>('select count(*)::integer as n from holdfast.batch')
      return rows[0]!.n
    }
    expect([await left(), await left(), await left()]).toEqual([2_500, 1_500, 1_000])
  })
})

describe('a partition that is about to be made', () => {
  test('is given up if the default partition gets a row of its day, and the prune goes on', async () => {
    const ahead = systemClock.now() + 3 * DAY_MS
    await other.query(`drop table holdfast.${nameOf('batch', ahead)}`)
    const writer = new pg.Client({ connectionString: database.url })
    await writer.connect()
    await writer.query('begin')
    await writer.query(`insert into holdfast.batch (token, claimed_at, size, has_large, wide, low, high, queue, first_name, last_name,
        ids, jobs, payloads)
      select 1, ${ahead}, 1, false, false, id, id, 'new', 'job', 'job', array[id], '[]', '' from gen_random_uuid() as id`)
    const pruned = store.upkeep.prune(KEEP_A_DAY, 100)
    await untilWaiting()
    await writer.query('commit')
    await writer.end()
    expect(await pruned).toEqual({ pruned: 0 })
    expect(await partitions()).not.toContain(nameOf('batch', ahead))
  })
})
