/** Embedded stores for tests, each with a clock that can be advanced and an audit at the end. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HoldfastError } from '../../src/errors.ts'
import type { StoreUnderTest } from '../../src/stores/conformance/index.ts'
import { loadDriver, type Database } from '../../src/stores/sqlite/driver.ts'
import { readSql } from '../../src/stores/sqlite/engine/db.ts'
import { storeOnThread } from '../../src/stores/sqlite/sqlite-store.ts'
import { SharedClock } from '../../src/stores/sqlite/thread/shared-clock.ts'
import type { Store } from '../../src/stores/store.ts'

export interface SqliteSetup {
  /** Whether the stores' clock only moves by `advance`. */
  readonly frozen?: boolean
  /** Maximum number of jobs that one list examines. */
  readonly maxLook?: number
  /** Changes the SQL of the store. */
  readonly edit?: (file: string, text: string) => string
}

const FROZEN_MS = Date.UTC(2030, 0, 1)
const AUDIT = readFileSync(new URL('sqlite-audit.sql', import.meta.url), 'utf8')

/** One database and one thread for many tests, because a thread is slow to start. Every test starts with empty tables. */
export class SqliteBench {
  readonly #folder = mkdtempSync(join(tmpdir(), 'holdfast-sqlite-'))
  readonly #clock = new SharedClock()
  readonly #store: Store
  #database: Database | undefined

  constructor({ frozen = false, maxLook, edit }: SqliteSetup = {}) {
    if (frozen) this.#clock.freezeAt(FROZEN_MS)
    const { buffer } = this.#clock
    const data = {
      directory: this.directory,
      durability: 'normal',
      clock: buffer,
      maxLook: maxLook ?? null,
      sql: edit === undefined ? null : readSql(undefined, edit),
    } as const
    this.#store = storeOnThread(data, () => undefined)
  }

  get directory(): string {
    return join(this.#folder, 'store')
  }

  async open(): Promise<StoreUnderTest> {
    await this.#store.open()
    return {
      store: lent(this.#store),
      advance: (ms) => Promise.resolve(this.#clock.advance(ms)),
      close: () => this.#empty(),
    }
  }

  async close(): Promise<void> {
    this.#database?.close()
    await this.#store.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #empty(): Promise<void> {
    const { DatabaseSync } = await loadDriver()
    this.#database ??= new DatabaseSync(join(this.directory, 'holdfast.db'))
    const database = this.#database
    const wrong = database.prepare(AUDIT).all()
    const tables = database
      .prepare(`select name from sqlite_schema where type = 'table' and name like 'holdfast_%'`)
      .all()
    database.exec('begin immediate')
    for (const { name } of tables as { readonly name: string }[]) database.exec(`delete from ${name}`)
    database.exec('commit')
    assert.deepEqual(wrong, [], 'a recount of the store')
  }
}

/** The store without its close, because every test closes its store. */
function lent(store: Store): Store {
  let isClosed = false
  const refused = (): Promise<never> =>
    Promise.reject(new HoldfastError('HF_CLOSED', 'The embedded store is closed.'))
  const guarded = <T extends object>(part: T): T =>
    Object.fromEntries(
      Object.entries(part as Record<string, unknown>).map(([name, member]) => {
        if (typeof member === 'object' && member !== null) return [name, guarded(member)]
        if (typeof member !== 'function') return [name, member]
        return [
          name,
          (...args: unknown[]): unknown =>
            isClosed ? refused() : (member as (...all: unknown[]) => unknown)(...args),
        ]
      }),
    ) as T
  return {
    ...guarded(store),
    close: () => {
      isClosed = true
      return Promise.resolve()
    },
  }
}
