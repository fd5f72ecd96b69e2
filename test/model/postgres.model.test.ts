import { afterAll, beforeAll, describe, test } from 'vitest'
import { pgExecutor } from '../../src/stores/postgres/pg/pg-executor.ts'
import type { Executor } from '../../src/stores/postgres/executor.ts'
import {
  freshDatabase,
  sharedPostgres,
  type Database,
  postgresVersions,
} from '../support/servers/database.ts'
import { openSqlStore } from '../support/sql-stores.ts'
import { runModelTest } from './run.ts'

describe.each(postgresVersions())('the store on PostgreSQL %i', (version) => {
  let database: Database
  let executor: Executor
  beforeAll(async () => {
    database = await freshDatabase(sharedPostgres(version))
    executor = pgExecutor({ connectionString: database.url })
  })
  afterAll(async () => {
    await executor.close()
    await database.drop()
  })

  test('does what the model does', { timeout: 120_000 }, async () => {
    await runModelTest(() => openSqlStore({ executor, own: false, frozen: true }), {
      numRuns: version === 18 ? 15 : 5,
      shrink: false,
    })
  })
})
