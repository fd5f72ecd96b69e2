/** What `sqliteStore({ database })` and its `{ tx }` refuse, before anything is written. */
import Database from 'better-sqlite3'
import { DatabaseSync } from '@photostructure/sqlite'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { holdfast, type Tx } from 'holdfast'
import { Kysely, SqliteDialect } from 'kysely'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { sqliteStore } from 'holdfast/sqlite'
import { betterSqlite, SqliteFolder } from '../support/sqlite-database.ts'
import { thrownBy } from '../support/virtual.ts'
import { openApp } from './sqlite-support.ts'

const folder = new SqliteFolder()
afterAll(() => folder.remove())

const open = () => folder.open(betterSqlite) as Database.Database

/** A database of a process of its own. */
const openTx = (database: Database.Database): Database.Database => {
  database.exec('begin; create table if not exists mine (a integer)')
  return database
}

describe('sqliteStore({ database }) refuses', () => {
  const closed = (): unknown => {
    const database = open()
    database.close()
    return database
  }
  const rollbackJournal = (): unknown => {
    const database = open()
    database.pragma('journal_mode = delete')
    return database
  }
  test.each<[name: string, says: string, make: () => unknown]>([
    ['a database in memory', 'in memory or temporary', () => new Database(':memory:')],
    ['a temporary database', 'in memory or temporary', () => new Database('')],
    ['a DatabaseSync in memory', 'in memory or temporary', () => new DatabaseSync(':memory:')],
    ['a rollback journal', 'has the journal mode delete', rollbackJournal],
    ['a closed database', 'cannot be used', closed],
    ['a Drizzle database', 'is not an open SQLite database', () => drizzle(open())],
    [
      'a Kysely',
      'is not an open SQLite database',
      () => new Kysely({ dialect: new SqliteDialect({ database: open() }) }),
    ],
    ['a path', 'is not an open SQLite database', () => 'app.db'],
    ['null', 'is not an open SQLite database', () => null],
  ])('%s', (_name, says, make) => {
    const database = make() as Database.Database
    expect(() => sqliteStore({ database })).toThrow(
      expect.objectContaining({ code: 'HF_BAD_OPTION', message: expect.stringContaining(says) as string }),
    )
  })

  test('a rollback journal with the statement that helps', () => {
    expect(() => sqliteStore({ database: rollbackJournal() as Database.Database })).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('pragma journal_mode = wal') as string }),
    )
  })

  test('a directory besides, and a prefix without a database', () => {
    const refusal = expect.objectContaining({ code: 'HF_BAD_OPTION' }) as Error
    expect(() => sqliteStore({ database: open(), directory: 'x' })).toThrow(refusal)
    expect(() => sqliteStore({ prefix: 'jobs_' })).toThrow(refusal)
  })

  test.each(['', '1_', 'sqlite_', 'a b', "a'", 'ü_', 'x'.repeat(31), 7])('the prefix %j', (prefix) => {
    expect(() => sqliteStore({ database: open(), prefix: prefix as string })).toThrow(
      expect.objectContaining({ code: 'HF_BAD_OPTION' }),
    )
  })

  test('tables of a newer version, and tables that are not its own', async () => {
    const newer = open()
    const store = sqliteStore({ database: newer })
    await store.open()
    await store.close()
    newer.exec('update holdfast_version set version = 1000')
    expect(await thrownBy(sqliteStore({ database: newer }).open())).toMatchObject({
      code: 'HF_SCHEMA_TOO_NEW',
    })
    const clash = open()
    clash.exec('create table Jobs_Job (mine text)')
    expect(await thrownBy(sqliteStore({ database: clash, prefix: 'jobs_' }).open())).toMatchObject({
      code: 'HF_SCHEMA_CLASH',
    })
  })
})

describe('{ tx } refuses', () => {
  type App = ReturnType<typeof setUp>
  const setUp = () => {
    const { database, hf } = openApp(folder, betterSqlite)
    return { database: database as Database.Database, hf, job: hf.job({ name: 'greet', run: () => 1 }) }
  }
  const kysely = (database: Database.Database) => new Kysely({ dialect: new SqliteDialect({ database }) })

  test.each<[name: string, says: string, make: (app: App) => unknown]>([
    ['a database outside of a transaction', 'no transaction is open', ({ database }) => database],
    ['a Drizzle outside of a transaction', 'no transaction is open', ({ database }) => drizzle(database)],
    ['a Kysely outside of a transaction', 'outside of a transaction', ({ database }) => kysely(database)],
    ['another database', 'on another database', () => openTx(open())],
    ['a Drizzle on another database', 'on another database', () => drizzle(openTx(open()))],
    ['a database in memory', 'on another database', () => openTx(new Database(':memory:'))],
    [
      'another library on the same file',
      'of another library',
      ({ database }) => {
        const other = new DatabaseSync(database.name)
        other.exec('begin')
        return other
      },
    ],
    [
      'a closed database',
      'cannot be used',
      ({ database }) => {
        const other = new Database(database.name)
        other.close()
        return other
      },
    ],
    ['a client of pg', 'is no transaction that this store knows', () => ({ query: () => undefined })],
    ['null', 'is no transaction that this store knows', () => null],
  ])('%s', async (_name, says, make) => {
    const app = setUp()
    await app.hf.queues()
    const tx = make(app) as Tx
    expect(await thrownBy(app.job.enqueue(undefined, { tx }))).toMatchObject({
      code: 'HF_BAD_OPTION',
      message: expect.stringContaining(says) as string,
    })
    expect(app.database.prepare('select count(*) as n from holdfast_job').get()).toEqual({ n: 0 })
    await app.hf.close()
  })

  test('a transaction of a Kysely with a connection of its own, and leaves that as it was', async () => {
    const { database, hf, job } = setUp()
    await hf.queues()
    const own = kysely(new Database(database.name))
    await own.transaction().execute(async (tx) => {
      expect(await thrownBy(job.enqueue(undefined, { tx }))).toMatchObject({
        code: 'HF_BAD_OPTION',
        message: expect.stringContaining('on another connection') as string,
      })
    })
    await own.destroy()
    await hf.close()
  })

  test('but takes another handle of the same library on the same file, by whichever name', async () => {
    const { database, hf, job } = setUp()
    await hf.queues()
    const link = join(folder.path, 'link.db')
    symlinkSync(database.name, link)
    for (const name of [database.name, link]) {
      const other = new Database(name)
      other.transaction(() => job.enqueueSync(undefined, { tx: other }))()
      other.close()
    }
    expect(await hf.queues()).toMatchObject([{ counts: { ready: 2 } }])
    await hf.close()
  })
})

test('the handle of the caller stays open when the store closes', async () => {
  const database = open()
  const hf = holdfast({ store: sqliteStore({ database }), logger: false })
  await hf.queues()
  await hf.close()
  expect(database.open).toBe(true)
  expect(database.inTransaction).toBe(false)
})
