/**
 * The contract of the stores on `node:sqlite`, as tests of Node's own runner: vitest runs on the Node of the repository,
 * which may have no SQLite. Node strips the types of the sources itself.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import {
  PAGED_TOPICS,
  storeConformance,
  withoutTransactions,
  type StoreUnderTest,
} from '../../../../src/stores/conformance/index.ts'
import { storeInDatabase } from '../../../../src/stores/sqlite/caller/caller-store.ts'
import { loadDriver } from '../../../../src/stores/sqlite/driver.ts'
import { SharedClock } from '../../../../src/stores/sqlite/thread/shared-clock.ts'
import { SqliteBench, type SqliteSetup } from '../../../support/sqlite.ts'

const driver = await loadDriver()
const NODE_SQLITE: string = 'node:sqlite'
// The very module, or this would be about another library.
assert.equal(((await import(NODE_SQLITE)) as typeof driver).DatabaseSync, driver.DatabaseSync)

const runner = {
  describe: (name: string, body: () => void): void => void describe(name, body),
  test: (name: string, body: () => Promise<void>): void => void test(name, body),
  skip: (name: string): void => void test.skip(name),
}
const folder = mkdtempSync(join(tmpdir(), 'holdfast-node-sqlite-'))
after(() => rmSync(folder, { recursive: true, force: true }))
let files = 0

function bench(setup?: SqliteSetup): SqliteBench {
  const made = new SqliteBench(setup)
  after(() => made.close())
  return made
}

runner.describe('the embedded store on node:sqlite', () => {
  const made = bench()
  storeConformance({ runner, open: () => made.open(), skip: withoutTransactions })
})

runner.describe('the embedded store on node:sqlite with pages that end after three jobs', () => {
  const made = bench({ maxLook: 3 })
  storeConformance({ runner, open: () => made.open(), topics: PAGED_TOPICS })
})

runner.describe("the store in a database of the caller's on node:sqlite", () => {
  storeConformance({ runner, open: inDatabase })
})

async function inDatabase(): Promise<StoreUnderTest> {
  const database = new driver.DatabaseSync(join(folder, `app-${files++}.db`))
  database.exec('pragma journal_mode = wal; pragma synchronous = normal')
  const clock = new SharedClock()
  const store = storeInDatabase({ database, prefix: 'jobs_', durability: 'normal' }, { clock })
  await store.open()
  return {
    store,
    advance: (ms) => Promise.resolve(clock.advance(ms)),
    close: async () => {
      await store.close()
      database.close()
    },
  }
}
