/** What stands in the tables when nobody can see it any more: nothing. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../test/support/servers/database.ts'
import { openSqlStore } from '../../../test/support/sql-stores.ts'
import type { StoreUnderTest } from '../conformance/index.ts'
import {
  changeJobs,
  DEAD,
  editOne,
  Harness,
  MINUTE_MS,
  settleRequest,
  uniqueWhile,
} from '../conformance/support.ts'
import type { Executor } from './executor.ts'
import { readNames, render, type Names } from './names.ts'
import { pgExecutor } from './pg/pg-executor.ts'

const LONG = JSON.stringify('x'.repeat(10_000))
const KEEP_ALL = {
  completedMs: MINUTE_MS,
  deadMs: MINUTE_MS,
  cancelledMs: MINUTE_MS,
  maxCompleted: null,
  maxDead: null,
  maxCancelled: null,
}

describe('nothing is left', () => {
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
    return () => under.close()
  })

  const rowsIn = async (table: string): Promise<number> => {
    const text = render(`select count(*) as n from holdfast.${table}`, names)
    const [row] = await executor.query<{ n: number }>({ name: `rows in ${table}`, text }, [])
    return row!.n
  }

  test('of a dead job that is forgotten', async () => {
    const held = await harness.running({ payload: LONG, unique: uniqueWhile('unfinished') })
    expect(await rowsIn('payload')).toBe(1)
    await harness.cycle(held.worker, [{ ...settleRequest(held, DEAD), forget: true }], null)
    expect([await rowsIn('payload'), await rowsIn('unique_key'), await rowsIn('dead')]).toEqual([0, 0, 0])
  })

  test('of a long payload that an edit or a replay made short', async () => {
    const job = await harness.put({ payload: LONG, queue: 'edited' })
    const { id } = await harness.finished(DEAD, { payload: LONG })
    await editOne(harness.store, job.id, { payload: '"short"' })
    await changeJobs(harness.store, { ids: [id] }, { type: 'replay', payload: '"short"' }, 10, null)
    expect(await rowsIn('payload')).toBe(0)
  })

  test('of flushes and of keys that were held for a time, however many there were', async () => {
    await executor.script(
      render(
        `insert into holdfast.intake (id, at) select gen_random_uuid(), 0 from generate_series(1, 25000);
        insert into holdfast.unique_key (key, job, until)
        select number::text, gen_random_uuid(), 1 from generate_series(1, 25000) as number`,
        names,
      ),
    )
    await harness.store.upkeep.prune(KEEP_ALL, 10)
    expect([await rowsIn('intake'), await rowsIn('unique_key')]).toEqual([0, 0])
  })

  test('of a note whose time is over, once the upkeep comes by', async () => {
    await harness.store.notes.put('worker', 'gone', 'text', MINUTE_MS)
    await harness.store.notes.put('worker', 'kept', 'text', null)
    await harness.advance(2 * MINUTE_MS)
    await harness.store.upkeep.prune(KEEP_ALL, 10)
    expect(await rowsIn('note')).toBe(1)
  })
})
