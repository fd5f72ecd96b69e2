/**
 * Our tables in the caller's database. Their version is in a separate table, because user_version and application_id of
 * the file belong to its owner.
 */
import { HoldfastError } from '../../../errors.ts'
import type { Database } from '../driver.ts'
import { Db, type SqlTexts } from '../engine/db.ts'
import { SCHEMA_VERSION } from '../open-database.ts'
import { isBusy } from '../sqlite-errors.ts'
import { beginImmediate, rollBack } from '../lock.ts'

/** In a transaction of its own, for which it waits. */
export async function install(database: Database, texts: SqlTexts): Promise<void> {
  if (isInstalled(database, texts)) return
  await beginImmediate(database)
  commitTables(database, texts)
}

/** The same without waiting: false if the write lock is taken. */
export function installNow(database: Database, texts: SqlTexts): boolean {
  if (isInstalled(database, texts)) return true
  try {
    database.exec('begin immediate')
  } catch (error) {
    if (isBusy(error)) return false
    throw error
  }
  commitTables(database, texts)
  return true
}

function commitTables(database: Database, texts: SqlTexts): void {
  try {
    installInside(database, texts)
    database.exec('commit')
  } catch (error) {
    rollBack(database)
    throw error
  }
}

/** In the transaction that is open: another process may have installed them meanwhile. */
export function installInside(database: Database, texts: SqlTexts): void {
  if (isInstalled(database, texts)) return
  const db = new Db(database, texts.statements)
  database.exec(texts.tables)
  db.run('makeVersion')
  db.run('writeVersion', SCHEMA_VERSION)
}

/** Refuses tables that are not ours, or newer than this program. */
function isInstalled(database: Database, { statements }: SqlTexts): boolean {
  // Prepared again: a statement cannot be prepared before its table exists.
  const db = new Db(database, statements)
  const names = db.all<{ name: string }>('ownTables').map(({ name }) => name)
  if (names.length === 0) return false
  if (names.length === 1)
    throw new HoldfastError(
      'HF_SCHEMA_CLASH',
      `The database has a table ${names[0]} that is not Holdfast's.`,
      {
        hint: 'Give sqliteStore() another `prefix`, so that its names are free.',
      },
    )
  const version = db.get<{ version: number }>('version')?.version ?? 0
  if (version <= SCHEMA_VERSION) return true
  throw new HoldfastError(
    'HF_SCHEMA_TOO_NEW',
    `The database has version ${version} of the tables, and this program knows ${SCHEMA_VERSION}.`,
  )
}
