/** A database that is not ours, or newer than this program, is refused, and stays as it is. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { backupStore } from '../backup.ts'
import { loadDriver } from '../driver.ts'
import { sqliteStore } from '../index.ts'
import { readSql } from '../engine/db.ts'
import { openDatabase, SCHEMA_VERSION } from '../open-database.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-owner-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A directory whose database that SQL has made or changed. */
async function directoryWith(sql: string, isOurs: boolean): Promise<string> {
  const directory = join(folder, 'store')
  if (isOurs) {
    const store = sqliteStore({ directory })
    await store.open()
    await store.close()
  } else mkdirSync(directory, { mode: 0o700 })
  const { DatabaseSync } = await loadDriver()
  const database = new DatabaseSync(join(directory, 'holdfast.db'))
  database.exec(sql)
  database.close()
  return directory
}

describe.each([
  [
    "another program's database",
    'create table theirs (a); insert into theirs values (1)',
    false,
    'HF_BAD_STORE',
  ],
  ["another program's database, by its mark", 'pragma application_id = 42', false, 'HF_BAD_STORE'],
  ['a version of another program without tables', 'pragma user_version = 7', false, 'HF_BAD_STORE'],
  ["a newer version's", `pragma user_version = ${SCHEMA_VERSION + 1}`, true, 'HF_SCHEMA_TOO_NEW'],
])('%s', (_, sql, isOurs, code) => {
  test('is refused by the store, and by its backup', async () => {
    const directory = await directoryWith(sql, isOurs)
    const file = join(directory, 'holdfast.db')
    const before = readFileSync(file)
    const store = sqliteStore({ directory })
    await expect(store.open()).rejects.toMatchObject({ code, message: expect.stringContaining(file) })
    await store.close()
    await expect(backupStore(directory, join(folder, 'copy.db'))).rejects.toMatchObject({ code })
    expect(readFileSync(file).equals(before)).toBe(true)
  })
})

test('tables that another process installs between two looks at the marks are ours', async () => {
  const path = join(folder, 'holdfast.db')
  const driver = await loadDriver()
  const { tables } = readSql()
  const open = () => openDatabase(driver, path, 'full', tables)
  // A file in WAL mode without tables, as another process leaves it for a moment.
  const other = new driver.DatabaseSync(path)
  other.exec('pragma journal_mode = wal')
  other.close()

  let isInstalled = false
  class Interrupted extends driver.DatabaseSync {
    override prepare(sql: string) {
      if (sql === 'pragma schema_version' && !isInstalled) {
        isInstalled = true
        open().close()
      }
      return super.prepare(sql)
    }
  }
  openDatabase({ library: driver.library, DatabaseSync: Interrupted }, path, 'full', tables).close()
  expect(isInstalled).toBe(true)
})
