/** The tests that catch mutants of the SQL, on the unmodified SQL. */
import { afterAll, beforeAll, test } from 'vitest'
import { pgExecutor } from '../../../src/stores/postgres/pg/pg-executor.ts'
import type { Executor } from '../../../src/stores/postgres/executor.ts'
import { freshDatabase, sharedPostgres, type Database } from '../../support/servers/database.ts'
import { openSqlStore } from '../../support/sql-stores.ts'
import { POSTGRES_TESTS } from './site.ts'

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

test.each(Object.entries(POSTGRES_TESTS))('%s', async (_, crossing) => {
  // Some break the data on purpose.
  const under = await openSqlStore({ executor, own: false, audited: false })
  try {
    await crossing({ under, names: under.names, url: database.url })
  } finally {
    await under.close()
  }
})
