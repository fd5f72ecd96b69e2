/**
 * An open database of the caller's library: better-sqlite3, libsql, `node:sqlite` or `@photostructure/sqlite`. They are
 * recognised by their methods, so that none of them is a dependency of ours.
 */
import type { Database, Statement } from '../driver.ts'

/** A handle of an SQLite library: `new Database('app.db')` of better-sqlite3 or libsql, or a `DatabaseSync`. */
export interface SqliteDatabase {
  prepare(sql: string): unknown
  exec(sql: string): unknown
  close(): unknown
}

export function isHandle(value: unknown): value is SqliteDatabase {
  return (
    typeof value === 'object' &&
    value !== null &&
    ['prepare', 'exec', 'close'].every(
      (name) => typeof (value as Record<string, unknown>)[name] === 'function',
    )
  )
}

/** The handle as the engine takes it. */
export function adapt(handle: SqliteDatabase): Database {
  return {
    exec: (sql) => void handle.exec(sql),
    prepare: (sql) => plain(handle.prepare(sql) as LibraryStatement),
    close: () => void handle.close(),
  }
}

interface LibraryStatement extends Statement {
  safeIntegers?(on: boolean): unknown
  setReadBigInts?(on: boolean): unknown
  raw?(on: boolean): unknown
}

/** The caller may have asked its library for bigints or for rows as arrays. */
function plain(statement: LibraryStatement): Statement {
  statement.safeIntegers?.(false)
  statement.setReadBigInts?.(false)
  statement.setReturnArrays?.(false)
  if (statement.setReturnArrays === undefined && statement.raw !== undefined)
    statement.setReturnArrays = (on) => void statement.raw?.(on)
  return statement
}

/** Absolute path of the main database; empty if it is in memory or temporary. */
export function pathOf(handle: SqliteDatabase): string {
  const all = adapt(handle).prepare('pragma database_list').all() as {
    readonly name: string
    readonly file: string
  }[]
  return all.find(({ name }) => name === 'main')?.file ?? ''
}

/** The first value of a pragma. */
export function pragma(handle: SqliteDatabase, name: string): string | number | undefined {
  const row = adapt(handle).prepare(`pragma ${name}`).get() as
    | Readonly<Record<string, string | number>>
    | undefined
  return row?.[name]
}

/** Whether a transaction is open; null if the library does not tell (`node:sqlite` before 22.16). */
export function toldTransaction(handle: SqliteDatabase): boolean | null {
  // libsql ends the process if a closed handle is asked.
  if ((handle as { readonly open?: unknown }).open === false) throw new Error('The database is closed')
  const { inTransaction, isTransaction } = handle as {
    readonly inTransaction?: unknown
    readonly isTransaction?: unknown
  }
  if (typeof inTransaction === 'boolean') return inTransaction
  return typeof isTransaction === 'boolean' ? isTransaction : null
}

export function isInTransaction(handle: SqliteDatabase): boolean {
  const told = toldTransaction(handle)
  if (told !== null) return told
  try {
    handle.exec('begin')
  } catch (error) {
    if (error instanceof Error && error.message.includes('within a transaction')) return true
    throw error
  }
  handle.exec('rollback')
  return false
}
