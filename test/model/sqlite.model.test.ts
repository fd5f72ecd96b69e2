import { afterAll, test } from 'vitest'
import { SqliteBench } from '../support/sqlite.ts'
import { runModelTest } from './run.ts'

const bench = new SqliteBench({ frozen: true })
afterAll(() => bench.close())

test(
  'the embedded store does what the model does, and has counted what a recount finds',
  { timeout: 120_000 },
  async () => {
    await runModelTest(() => bench.open(), { numRuns: 30, shrink: false })
  },
)
