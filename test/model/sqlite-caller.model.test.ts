import { afterAll, test } from 'vitest'
import { databaseSync, SqliteFolder } from '../support/sqlite-database.ts'
import { runModelTest } from './run.ts'

const folder = new SqliteFolder({ frozen: true })
afterAll(() => folder.remove())

test(
  "the store in a database of the caller's does what the model does, and has counted what a recount finds",
  { timeout: 120_000 },
  async () => {
    await runModelTest(() => folder.store(databaseSync), { numRuns: 30, shrink: false })
  },
)
