import { afterAll, describe, test } from 'vitest'
import { SqliteBench, type SqliteSetup } from '../../../test/support/sqlite.ts'
import { PAGED_TOPICS, storeConformance, withoutTransactions } from '../conformance/index.ts'

const runner = { describe, test, skip: (name: string) => test.skip(name) }

function bench(setup?: SqliteSetup): SqliteBench {
  const made = new SqliteBench(setup)
  afterAll(() => made.close())
  return made
}

describe('the embedded store', () => {
  const made = bench()
  storeConformance({ runner, open: () => made.open(), skip: withoutTransactions })
})

describe('the embedded store with pages that end after three jobs', () => {
  const made = bench({ maxLook: 3 })
  storeConformance({ runner, open: () => made.open(), topics: PAGED_TOPICS })
})
