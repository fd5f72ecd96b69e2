/** A folder for the stores of one test file, and looks into them past the store. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { loadDriver, type Database, type SqlValue } from '../../../../src/stores/sqlite/driver.ts'
import { sqliteStore } from '../../../../src/stores/sqlite/index.ts'
import type { Store } from '../../../../src/stores/store.ts'

export const AUDIT = readFileSync(new URL('../../../support/sqlite-audit.sql', import.meta.url), 'utf8')

/** Removed with everything in it when the file's tests are over. */
export function folderForStores(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-shared-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export async function openStore(directory: string): Promise<Store> {
  const store = sqliteStore({ directory, onNotice: () => undefined })
  await store.open()
  return store
}

export async function openPast(directory: string): Promise<Database> {
  const { DatabaseSync } = await loadDriver()
  const database = new DatabaseSync(join(directory, 'holdfast.db'))
  database.exec('pragma busy_timeout = 10000')
  return database
}

export async function withDatabase<T>(directory: string, look: (database: Database) => T): Promise<T> {
  const database = await openPast(directory)
  try {
    return look(database)
  } finally {
    database.close()
  }
}

export function rowsOf<Row>(directory: string, sql: string, ...values: SqlValue[]): Promise<Row[]> {
  return withDatabase(directory, (database) => database.prepare(sql).all(...values) as Row[])
}

/** What a recount finds wrong. */
export async function audited(directory: string): Promise<readonly string[]> {
  return (await rowsOf<{ wrong: string }>(directory, AUDIT)).map(({ wrong }) => wrong)
}
