/** The contract on PostgreSQL, newest and oldest, and with a table prefix. */
import { afterAll, beforeAll, describe, test } from 'vitest'
import {
  freshDatabase,
  sharedPostgres,
  type Database,
  postgresVersions,
} from '../../../test/support/servers/database.ts'
import { openSqlStore } from '../../../test/support/sql-stores.ts'
import { storeConformance } from '../conformance/index.ts'
import type { Executor } from './executor.ts'
import { pgExecutor } from './pg/pg-executor.ts'

const runner = { describe, test, skip: (name: string) => test.skip(name) }

describe.each(
  (
    [
      { version: 18, prefix: '' },
      { version: 13, prefix: 'p_' },
    ] as const
  ).filter(({ version }) => postgresVersions().includes(version)),
)('PostgreSQL $version', ({ version, prefix }) => {
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

  storeConformance({
    open: () => openSqlStore({ executor, own: false, prefix }),
    runner,
  })
})
