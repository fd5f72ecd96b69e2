/** The contract behind a PgBouncer in transaction mode, where nothing of a session lasts and LISTEN hears nothing. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { holdfast } from '../../../src/index.ts'
import { subscribeTopic } from '../../../src/stores/conformance/subscribe.ts'
import { skipAll } from '../../../src/stores/conformance/suite.ts'
import { storeConformance } from '../../../src/stores/conformance/index.ts'
import { pgExecutor } from '../../../src/stores/postgres/pg/pg-executor.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import type { Executor } from '../../../src/stores/postgres/executor.ts'
import { freshDatabase, portOf, sharedPostgres, type Database } from '../../support/servers/database.ts'
import { pgBouncerMissing, startPgBouncer, type PgBouncer } from '../../support/servers/pgbouncer.ts'
import { openSqlStore } from '../../support/sql-stores.ts'

let database: Database
let bouncer: PgBouncer | null
let executor: Executor

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  bouncer = await startPgBouncer({ port: portOf(database.url) })
  executor = pgExecutor({ connectionString: url() })
}, 60_000)

afterAll(async () => {
  await executor.close()
  await bouncer?.dispose()
  await database.drop()
})

beforeEach(({ skip }) => {
  if (bouncer === null) skip(pgBouncerMissing())
})

function url(): string {
  return bouncer?.url(new URL(database.url).pathname.slice(1)) ?? database.url
}

const deaf = 'no notice arrives in transaction mode'
storeConformance({
  open: () => openSqlStore({ executor, own: false }),
  runner: { describe, test, skip: (name) => test.skip(name) },
  skip: {
    ...skipAll(subscribeTopic, deaf),
    'a released job makes workers look': deaf,
  },
})

describe('a worker behind PgBouncer', () => {
  test('emits one notice that no wake-ups arrive, and finds jobs by polling', async () => {
    const notices: string[] = []
    const store = postgresStore({ url: url(), onNotice: (line) => notices.push(line) })
    await using hf = holdfast({ store, logger: false })
    const hello = hf.job({ name: 'hello', run: () => 'hello' })
    const worker = await hf.work({ poll: 100 })
    for (let time = 0; time < 5; time++) {
      const handle = await hello.enqueue()
      expect(await handle.result({ timeout: '20s' })).toBe('hello')
    }
    await worker.stop()
    expect(notices.filter((line) => line.includes('LISTEN'))).toHaveLength(1)
  })
})
