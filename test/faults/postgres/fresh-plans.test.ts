/**
 * The plans of the statements must not depend on statistics. On a database that was never analysed, or was analysed while
 * empty, the planner assumes that every table is tiny. A plan that reads a whole table is then cheap, is cached, and reads
 * every row from then on, dead rows included. So each test first runs every statement many times while the tables are tiny.
 * It then fills the tables and examines the cached plans, on the connection that made them: no node may touch many more
 * rows than the statement has jobs. Rare statements are included, because hot ones call the same functions, and the plan of
 * a statement inside a function is cached for all of its callers.
 */
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readNames } from '../../../src/stores/postgres/names.ts'
import { pgExecutor } from '../../../src/stores/postgres/pg/pg-executor.ts'
import { sqlStore } from '../../../src/stores/postgres/sql-store.ts'
import type { Store } from '../../../src/stores/store.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { systemRandom } from '../../../src/std/random.ts'
import { freshDatabase, sharedPostgres, type Database } from '../../support/servers/database.ts'
import { JOBS, Steps } from './support/fresh-steps.ts'
import { plansDuring, scansOf, tableOf, touched } from './support/plans.ts'

/** Without count_change and queue: the upkeep and hf.queues() read them as a whole, on purpose. */
const TABLES: ReadonlySet<string> = new Set([
  'ready',
  'scheduled',
  'lease',
  'batch',
  'history',
  'payload',
  'worker',
  'intake',
  'unique_key',
  'revoked',
  'dead',
  'ended',
])
/** Enough for a session to choose a generic plan by itself. */
const ROUNDS = 12
/** A batch is looked up by the bounds of its ids, so each job of a statement may find some that it is not in. */
const MOST_ROWS = 10 * JOBS
const LIVE_ROWS = 10 * MOST_ROWS

let database: Database
let pool: pg.Pool
let client: pg.PoolClient
let store: Store

beforeEach(async () => {
  database = await freshDatabase(sharedPostgres(18))
  pool = new pg.Pool({ connectionString: database.url, max: 1 })
  pool.on('connect', (connected) => void (client = connected))
  store = openStore(pool)
  await store.open()
  // Autovacuum must not repair the statistics, or it would hide the plans that these tests forbid.
  const { rows } = await pool.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class where relnamespace = 'holdfast'::regnamespace and relkind = 'r'`,
  )
  for (const { name } of rows) await pool.query(`alter table ${name} set (autovacuum_enabled = off)`)
})

afterEach(async () => {
  await store.close()
  await pool.end()
  await database.drop()
})

/** Everything runs on one connection, which caches its plans. */
function openStore(lent: pg.Pool): Store {
  const executor = pgExecutor({ pool: lent })
  const parts = { clock: systemClock, random: systemRandom }
  return sqlStore({ ...parts, executor, names: readNames({}), migrate: true })
}

function stepsOn(on: Store, lent: pg.Pool): Steps {
  return new Steps(on, (ids, action) =>
    lent.query('select holdfast.change($1::uuid[], null, $2, null, null)', [ids, action]),
  )
}

/** Many rows in every table, written on another connection, whose plans don't matter. */
async function fill(): Promise<void> {
  const lent = new pg.Pool({ connectionString: database.url, max: 1 })
  const other = openStore(lent)
  await other.open()
  await stepsOn(other, lent).fill(LIVE_ROWS)
  await other.close()
  await lent.end()
}

describe.each(['never analysed', 'analysed while empty'])('on a database that was %s', (how) => {
  test('no statement reads a whole table, however long its plan is kept', { timeout: 120_000 }, async () => {
    if (how === 'analysed while empty') await pool.query('analyze')
    const steps = stepsOn(store, pool)
    await steps.start()
    // The rare statements first, because the others find the rows that they leave behind.
    for (let round = 0; round < ROUNDS; round++)
      for (const { run } of [...steps.rare, ...steps.hot]) await run()
    await fill()
    for (const { name, run, reads = [] } of [...steps.hot, ...steps.rare]) {
      const plans = await plansDuring(client, run)
      for (const scan of plans.flatMap((plan) => scansOf(plan, TABLES))) {
        if (reads.includes(tableOf(scan))) continue
        const told = `${name}: ${JSON.stringify(scan).slice(0, 600)}`
        expect.soft(scan['Node Type'], told).not.toBe('Seq Scan')
        expect.soft(touched(scan), told).toBeLessThanOrEqual(MOST_ROWS)
      }
    }
  })
})
