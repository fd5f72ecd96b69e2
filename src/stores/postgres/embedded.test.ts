/** The contract on PGlite: the same SQL as on a server, so the same tests; one database for all, a schema for each. */
import { afterAll, beforeAll, describe, test } from 'vitest'
import { openSqlStore } from '../../../test/support/sql-stores.ts'
import { storeConformance } from '../conformance/index.ts'
import type { Executor } from './executor.ts'
import { pgliteExecutor } from './pglite/pglite-executor.ts'

describe('PGlite', () => {
  let executor: Executor
  beforeAll(async () => {
    executor = pgliteExecutor({ directory: null })
    await executor.open()
  }, 60_000)
  afterAll(() => executor.close())

  storeConformance({
    open: () => openSqlStore({ executor, own: false }),
    runner: { describe, test, skip: (name) => test.skip(name) },
  })
})
