/** Databases of a caller, in each SQLite library, that contain a store. */
import { DatabaseSync } from '@photostructure/sqlite'
import Database from 'better-sqlite3'
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { StoreUnderTest } from '../../src/stores/conformance/index.ts'
import { storeInDatabase } from '../../src/stores/sqlite/caller/caller-store.ts'
import { adapt, type SqliteDatabase } from '../../src/stores/sqlite/caller/handle.ts'
import { SharedClock } from '../../src/stores/sqlite/thread/shared-clock.ts'

/** What tests do with a handle, whatever its library. */
export interface TestHandle extends SqliteDatabase {
  prepare(sql: string): {
    all(...values: unknown[]): unknown[]
    run(...values: unknown[]): unknown
    iterate(...values: unknown[]): Iterable<unknown>
  }
}

export interface SqliteLibrary {
  readonly name: string
  readonly open: (path: string) => TestHandle
}

export const betterSqlite: SqliteLibrary = { name: 'better-sqlite3', open: (path) => new Database(path) }
/** `node:sqlite` has the same API; Node 20 does not have it. */
export const databaseSync: SqliteLibrary = {
  name: 'DatabaseSync',
  open: (path) => new DatabaseSync(path),
}
/** A fork of SQLite with the API of better-sqlite3. Its types are in its package, which is not one of ours. */
const Libsql = createRequire(new URL('../libraries/', import.meta.url))('libsql') as new (
  path: string,
) => TestHandle
export const libsql: SqliteLibrary = { name: 'libsql', open: (path) => new Libsql(path) }
export const sqliteLibraries = [betterSqlite, databaseSync, libsql] as const

const PREFIX = 'jobs_'
const FROZEN_MS = Date.UTC(2030, 0, 1)
const AUDIT = readFileSync(new URL('sqlite-audit.sql', import.meta.url), 'utf8')

/** A folder with databases in WAL mode. */
export class SqliteFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'holdfast-caller-'))
  readonly #isFrozen: boolean
  #files = 0

  /** `frozen`: whether the clock of its stores only moves by `advance`. */
  constructor({ frozen = false } = {}) {
    this.#isFrozen = frozen
  }

  /** A new file. */
  open({ open }: SqliteLibrary): TestHandle {
    const database = open(join(this.path, `app-${this.#files++}.db`))
    database.exec('pragma journal_mode = wal; pragma synchronous = normal')
    return database
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }

  /** A store in its own database, audited at the end. */
  async store(library: SqliteLibrary, maxLook?: number): Promise<StoreUnderTest> {
    const clock = new SharedClock()
    if (this.#isFrozen) clock.freezeAt(FROZEN_MS)
    const database = this.open(library)
    const world = maxLook === undefined ? { clock } : { clock, maxLook }
    const store = storeInDatabase({ database, prefix: PREFIX, durability: 'normal' }, world)
    await store.open()
    return {
      store,
      advance: (ms) => Promise.resolve(clock.advance(ms)),
      close: async () => {
        await store.close()
        const wrong = audit(database, PREFIX)
        database.close()
        assert.deepEqual(wrong, [], 'a recount of the store')
      },
    }
  }
}

/** The errors that a recount of the store finds. */
export function audit(database: SqliteDatabase, prefix = 'holdfast_'): unknown[] {
  return adapt(database).prepare(AUDIT.replaceAll('holdfast_', prefix)).all()
}
