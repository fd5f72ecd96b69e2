/** The audit after each test on PostgreSQL notices what it is there for. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  COMPLETED,
  Harness,
  newFlushId,
  newJob,
  settleRequest,
  uniqueWhile,
} from '../../../src/stores/conformance/support.ts'
import type { Executor } from '../../../src/stores/postgres/executor.ts'
import { render } from '../../../src/stores/postgres/names.ts'
import { pgExecutor } from '../../../src/stores/postgres/pg/pg-executor.ts'
import { openSqlStore } from '../sql-stores.ts'
import { freshDatabase, sharedPostgres, type Database } from './database.ts'

const LONG = JSON.stringify('x'.repeat(2_000))

let database: Database
let executor: Executor
beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  executor = pgExecutor({ connectionString: database.url })
})
afterAll(async () => {
  await executor.close()
  await database.drop()
})

test.each([
  ['nothing', 'select', null],
  ['a change that is not counted', 'update holdfast.count_change set ready = ready + 1', 'counts'],
  ['a payload without a job', `insert into holdfast.payload values (gen_random_uuid(), '')`, 'payload of'],
  ['a job without its payload', 'delete from holdfast.payload', 'lacks its payload'],
  ['a batch without a lease', 'delete from holdfast.lease', 'neither lease nor history'],
  ['a lease without a batch', 'delete from holdfast.batch', 'has no batch'],
  ['history of the wrong size', 'update holdfast.history set size = 7', 'and says 7'],
  ['a key without its job', 'update holdfast.unique_key set job = gen_random_uuid()', 'not unfinished'],
  [
    'a job in two places',
    'insert into holdfast.scheduled (id, due_at, head_start, created_at, priority, queue, name, facts, payload) select id, 0, 0, 0, 0, queue, name, facts, payload from holdfast.ready',
    'is in 2 places',
  ],
])('%s', async (_, sql, wrong) => {
  const under = await openSqlStore({ executor, own: false })
  const harness = new Harness(under)
  await harness.finished(COMPLETED)
  const held = await harness.running({ queue: 'running' })
  await harness.store.enqueue({
    id: newFlushId(),
    jobs: [newJob({ payload: LONG }), newJob({ unique: uniqueWhile('unfinished') })],
  })
  await executor.script(render(sql, under.names))
  if (wrong === null) {
    await harness.cycle(held.worker, [settleRequest(held, COMPLETED)], null)
    await under.close()
  } else await expect(under.close()).rejects.toThrow(wrong)
})
