/** A Holdfast in a database of the caller's, beside a table `effects` of the caller's. */
import { holdfast } from 'holdfast'
import { sqliteStore } from 'holdfast/sqlite'
import type { SqliteFolder, SqliteLibrary, TestHandle } from '../support/sqlite-database.ts'

export function openApp(folder: SqliteFolder, library: SqliteLibrary) {
  const database = folder.open(library)
  database.exec('create table effects (what text)')
  const hf = holdfast({ store: sqliteStore({ database, durability: 'normal' }), logger: false })
  return { database, hf }
}

export function effects(database: TestHandle): unknown[] {
  return (database.prepare('select what from effects').all() as { readonly what: string }[]).map(
    ({ what }) => what,
  )
}

export function note(database: TestHandle, what: string): void {
  database.prepare('insert into effects values (?)').run(what)
}
