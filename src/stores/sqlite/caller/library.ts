/** The caller's library and database file, and connections of our own to that file through that library. */
import { statSync, type BigIntStats } from 'node:fs'
import { HoldfastError } from '../../../errors.ts'
import { messageOf } from '../../../std/text.ts'
import type { Database } from '../driver.ts'
import type { Durability } from '../open-database.ts'
import { adapt, isHandle, pathOf, pragma, type SqliteDatabase } from './handle.ts'

export interface OwnConnection {
  /** As the library made it: what `commit()` gives to the handler. */
  readonly handle: SqliteDatabase
  readonly database: Database
  /** Whether the log is ours to keep small. The caller who has switched off its own checkpoints writes it back itself. */
  readonly keepsLog: boolean
}

export class Library {
  /** The caller's own. */
  readonly handle: SqliteDatabase
  readonly path: string
  readonly #durability: Durability

  /** Refuses what the store cannot use. */
  constructor(handle: unknown, durability: Durability) {
    if (!isHandle(handle)) throw unfit('The database is not an open SQLite database', HANDLES)
    this.handle = handle
    this.#durability = durability
    this.path = openPath(handle)
    if (statOf(this.path) === null)
      throw unfit('The database is in memory or temporary, so no second connection can open it', ON_DISK)
    const mode = String(pragma(handle, 'journal_mode')).toLowerCase()
    // Readers and writers of a rollback journal block each other, and so would two connections of one process.
    if (mode !== 'wal')
      throw unfit(
        `${this.path} has the journal mode ${mode}, in which our connection and yours would block each other`,
        'Run `pragma journal_mode = wal` on it once; the file keeps that mode.',
      )
  }

  /** Whether a handle is of the same library and has the same file open. Two libraries on one file lose data. */
  knows(handle: SqliteDatabase): boolean {
    if (handle === this.handle) return true
    if (handle.constructor !== this.handle.constructor) return false
    const path = pathOf(handle)
    return path === this.path || isSameFile(path, this.path)
  }

  /** Not the caller's connection: a transaction that the caller has open there must not be mixed up with ours. */
  connect(): OwnConnection {
    const handle = this.#open()
    const database = adapt(handle)
    try {
      // SQLite would block the event loop while it waits, and its busy handler lets the last holder of the lock win
      // again.
      database.exec('pragma busy_timeout = 0')
      database.exec(`pragma synchronous = ${this.#durability}`)
      // On macOS fsync alone leaves data in the cache of the disk. Elsewhere these do nothing.
      database.exec('pragma fullfsync = on; pragma checkpoint_fullfsync = on')
      // For what handlers write in commit().
      database.exec(`pragma foreign_keys = ${Number(pragma(this.handle, 'foreign_keys') ?? 0)}`)
      const pages = Number(pragma(this.handle, 'wal_autocheckpoint') ?? 0)
      database.exec(`pragma wal_autocheckpoint = ${pages}`)
      return { handle, database, keepsLog: pages > 0 }
    } catch (error) {
      database.close()
      throw error
    }
  }

  #open(): SqliteDatabase {
    const Class = this.handle.constructor as new (path: string) => unknown
    const handle = new Class(this.path)
    if (!isHandle(handle)) throw unfit('The class of the database does not make databases', HANDLES)
    if (isSameFile(pathOf(handle), this.path)) return handle
    handle.close()
    throw unfit(`The class of the database does not open ${this.path}`, HANDLES)
  }
}

const HANDLES =
  'Pass the handle of the library itself: new Database(path) of better-sqlite3 or libsql, or a DatabaseSync; of Drizzle, its $client.'
const ON_DISK = 'Open a file, or use memoryStore().'

function openPath(handle: SqliteDatabase): string {
  try {
    return pathOf(handle)
  } catch (error) {
    throw unfit(`The database cannot be used: ${messageOf(error)}`, HANDLES, error)
  }
}

function unfit(what: string, hint: string, cause?: unknown): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', `${what}.`, cause === undefined ? { hint } : { hint, cause })
}

function isSameFile(one: string, other: string): boolean {
  const [a, b] = [statOf(one), statOf(other)]
  return a !== null && b !== null && a.dev === b.dev && a.ino === b.ino
}

/** Asks for the file's identity without opening it: closing it again would drop SQLite's locks. */
function statOf(path: string): BigIntStats | null {
  if (path === '') return null
  try {
    return statSync(path, { bigint: true })
  } catch {
    return null
  }
}
