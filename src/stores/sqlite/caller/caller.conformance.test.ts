import { afterAll, describe, test } from 'vitest'
import { betterSqlite, SqliteFolder, sqliteLibraries } from '../../../../test/support/sqlite-database.ts'
import { PAGED_TOPICS, storeConformance } from '../../conformance/index.ts'

const runner = { describe, test, skip: (name: string) => test.skip(name) }
const folder = new SqliteFolder()
afterAll(() => folder.remove())

describe.each(sqliteLibraries)("the store in a database of the caller's: $name", (library) => {
  storeConformance({ runner, open: () => folder.store(library) })
})

describe("the store in a database of the caller's with pages that end after three jobs", () => {
  storeConformance({ runner, open: () => folder.store(betterSqlite, 3), topics: PAGED_TOPICS })
})
