/** Opens our database file: settings of the connection, and the tables if they are missing. */
import { HoldfastError } from '../../errors.ts'
import type { Database, Driver } from './driver.ts'

/**
 * `full`: a commit is on the disk before it is answered. `normal`: a power cut or a crash of the operating system can take
 * back the commits since the last checkpoint; a crash of a process takes back nothing.
 */
export type Durability = 'full' | 'normal'

/** 'HOLD': marks the file as ours. */
const APPLICATION_ID = 0x484f4c44
/** Of the tables. */
export const SCHEMA_VERSION = 1
/** Up to this size the whole file is checked at each opening, which takes about a millisecond a megabyte. */
const MAX_CHECKED_BYTES = 32 * 2 ** 20
/** While the file is opened; afterwards steps wait by themselves, see `lock.ts`. */
const OPEN_BUSY_MS = 10_000

/** `tables`: the SQL that makes them. */
export function openDatabase(driver: Driver, path: string, durability: Durability, tables: string): Database {
  const database = new driver.DatabaseSync(path)
  try {
    // First of all: switching to WAL needs a lock, and several processes may open a new file at the same time.
    database.exec(`pragma busy_timeout = ${OPEN_BUSY_MS}`)
    // Effective only before the first table. On a database that is there it would wait for the write lock.
    if (!atOneMoment(database, () => checkOwner(database, path)))
      database.exec('pragma auto_vacuum = incremental')
    database.exec('pragma journal_mode = wal')
    database.exec(`pragma synchronous = ${durability}`)
    // On macOS fsync alone leaves data in the cache of the disk. Elsewhere these do nothing.
    database.exec('pragma fullfsync = on; pragma checkpoint_fullfsync = on')
    database.exec('pragma wal_autocheckpoint = 1000; pragma journal_size_limit = 67108864')
    database.exec('pragma cache_size = -16000; pragma temp_store = memory')
    // A page that cannot be right is an error instead of a guess.
    database.exec('pragma cell_size_check = on')
    install(database, path, tables)
    checkStructure(database, path)
    database.exec('pragma busy_timeout = 0')
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/**
 * Whether the tables are there. Refuses what is not ours, or newer than this program. To be called in a transaction: the
 * marks of two moments, before and after another process has installed the tables, look like another program's.
 */
export function checkOwner(database: Database, path: string): boolean {
  const owner = pragma(database, 'application_id')
  const version = pragma(database, 'user_version')
  if (owner === 0 && version === 0 && pragma(database, 'schema_version') === 0) return false
  if (owner !== APPLICATION_ID)
    throw new HoldfastError('HF_BAD_STORE', `${path} is a database of another program.`, {
      hint: "Name another directory in 'file:…'.",
    })
  if (version > SCHEMA_VERSION)
    throw new HoldfastError(
      'HF_SCHEMA_TOO_NEW',
      `${path} has version ${version} of the tables, and this program knows ${SCHEMA_VERSION}.`,
    )
  return true
}

/** `read` sees the database as it is when it begins. */
export function atOneMoment<T>(database: Database, read: () => T): T {
  database.exec('begin')
  try {
    return read()
  } finally {
    database.exec('commit')
  }
}

/** Looks again under the write lock: another process may install the tables at the same time. */
function install(database: Database, path: string, tables: string): void {
  if (atOneMoment(database, () => checkOwner(database, path))) return
  database.exec('begin immediate')
  if (!checkOwner(database, path)) {
    database.exec(tables)
    database.exec(`pragma application_id = ${APPLICATION_ID}; pragma user_version = ${SCHEMA_VERSION}`)
  }
  database.exec('commit')
}

/** Rows that SQLite would pass over without an error. See docs/decisions/0014-embedded-sqlite-damage.md. */
function checkStructure(database: Database, path: string): void {
  if (pragma(database, 'page_count') * pragma(database, 'page_size') > MAX_CHECKED_BYTES) return
  const [found] = database.prepare('pragma integrity_check(1)').all() as {
    readonly integrity_check: string
  }[]
  // It has read every page into the cache.
  database.exec('pragma shrink_memory')
  if (found?.integrity_check === 'ok') return
  throw new HoldfastError('HF_STORE_DAMAGED', `${path} is damaged: ${found?.integrity_check ?? 'no answer'}.`)
}

function pragma(database: Database, name: string): number {
  const row = database.prepare(`pragma ${name}`).get() as Readonly<Record<string, number>>
  return row[name] ?? 0
}
