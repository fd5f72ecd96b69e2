/**
 * A unique key that is held until the first claim, met while a claim has the job in hand. The claim is played by hand, so
 * that the enqueue comes exactly between its lock on the job and its delete of the key.
 */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../test/support/servers/database.ts'
import { until } from '../../../test/support/until.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import { cancelOne, newFlushId, newJob, uniqueWhile } from '../conformance/support.ts'
import type { Store } from '../store.ts'
import { readNames } from './names.ts'
import { pgExecutor } from './pg/pg-executor.ts'
import { sqlStore } from './sql-store.ts'

let database: Database
let store: Store
let claim: pg.Client

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  const executor = pgExecutor({ connectionString: database.url })
  const parts = { names: readNames({}), clock: systemClock, random: systemRandom }
  store = sqlStore({ ...parts, executor, migrate: true })
  await store.open()
  claim = new pg.Client({ connectionString: database.url })
  await claim.connect()
})

afterAll(async () => {
  await claim.end()
  await store.close()
  await database.drop()
})

/** Resolves when a session waits for a lock that the claim holds. */
async function somebodyWaits(): Promise<void> {
  const blocked = `select from pg_stat_activity where pg_backend_pid() = any (pg_blocking_pids(pid))`
  await until('the enqueue to wait', async () => (await claim.query(blocked)).rows.length > 0)
}

test.for(['replace', 'reschedule', 'ignore'] as const)(
  'an enqueue that meets a job in the hands of a claim waits for it, and is then enqueued: %s',
  async (onConflict) => {
    const unique = uniqueWhile('ready', 'mail.send race', onConflict)
    const first = newJob({ unique, payload: '"old"' })
    await store.enqueue({ id: newFlushId(), jobs: [first] })
    await claim.query('begin')
    await claim.query('select from holdfast.ready where id = $1 for update', [first.id])
    const second = newJob({ unique, payload: '"new"' })
    const answer = store.enqueue({ id: newFlushId(), jobs: [second] })
    await somebodyWaits()
    await claim.query('delete from holdfast.ready where id = $1', [first.id])
    await claim.query('delete from holdfast.unique_key where job = $1', [first.id])
    await claim.query('commit')
    expect(await answer).toEqual([{ id: second.id, outcome: 'inserted' }])
    expect(await store.admin.get(second.id)).toMatchObject({ state: 'ready', payload: '"new"' })
    await cancelOne(store, second.id, null)
  },
)
