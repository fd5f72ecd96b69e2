/** Jobs in transactions of SQLite libraries: there if and only if the transaction commits. */
import type Database from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { holdfast, type SqliteTx, type Tx } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
import { CompiledQuery, Kysely, SqliteDialect } from 'kysely'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { sqliteStore } from 'holdfast/sqlite'
import {
  audit,
  betterSqlite,
  databaseSync,
  SqliteFolder,
  sqliteLibraries,
} from '../support/sqlite-database.ts'
import { thrownBy } from '../support/virtual.ts'
import { makeIds } from '../../src/job/ids.ts'
import { systemClock } from '../../src/std/clock.ts'
import { systemRandom } from '../../src/std/random.ts'
import { newJob } from '../../src/stores/conformance/support.ts'
import { effects, note, openApp } from './sqlite-support.ts'

const folder = new SqliteFolder()
afterAll(() => folder.remove())

/** Commits if `work` resolves, rolls back if it rejects. */
type Transact = (database: Database.Database, work: (tx: Tx) => Promise<unknown>) => Promise<unknown>

const byStatement: Transact = async (database, work) => {
  database.exec('begin')
  try {
    const result = await work(database)
    database.exec('commit')
    return result
  } catch (error) {
    database.exec('rollback')
    throw error
  }
}

const asynchronous: readonly [name: string, library: typeof betterSqlite, transact: Transact][] = [
  ['better-sqlite3 by statement', betterSqlite, byStatement],
  ['DatabaseSync', databaseSync, byStatement],
  [
    'Kysely',
    betterSqlite,
    (database, work) =>
      new Kysely({ dialect: new SqliteDialect({ database }) }).transaction().execute((tx) => work(tx)),
  ],
  [
    'a controlled transaction of Kysely',
    betterSqlite,
    async (database, work) => {
      const tx = await new Kysely({ dialect: new SqliteDialect({ database }) }).startTransaction().execute()
      try {
        const result = await work(tx)
        await tx.commit().execute()
        return result
      } catch (error) {
        await tx.rollback().execute()
        throw error
      }
    },
  ],
]

/** The same for a synchronous `work`. */
type TransactSync = (database: Database.Database, work: (tx: SqliteTx) => unknown) => unknown

const synchronous: readonly [name: string, library: typeof betterSqlite, transact: TransactSync][] = [
  ['better-sqlite3', betterSqlite, (database, work) => database.transaction(() => work(database))()],
  [
    'better-sqlite3, nested',
    betterSqlite,
    (database, work) => database.transaction(() => database.transaction(work)(database))(),
  ],
  ['Drizzle', betterSqlite, (database, work) => drizzle(database).transaction((tx) => work(tx))],
  [
    'Drizzle, nested',
    betterSqlite,
    (database, work) => drizzle(database).transaction((tx) => tx.transaction((inner) => work(inner))),
  ],
  [
    'DatabaseSync',
    databaseSync,
    (database, work) => {
      database.exec('begin immediate')
      try {
        const result = work(database)
        database.exec('commit')
        return result
      } catch (error) {
        database.exec('rollback')
        throw error
      }
    },
  ],
]

describe.each(asynchronous)('a job that is enqueued in a transaction of %s', (_name, library, transact) => {
  test('is there if the transaction commits, and runs', async () => {
    const { database, hf } = openApp(folder, library)
    const job = hf.job({
      name: 'greet',
      input: z.object({ who: z.string() }),
      run: ({ input }) => `hello ${input.who}`,
    })
    await using _worker = await hf.work()
    const handle = await transact(database as Database.Database, async (tx) => {
      note(database, 'committed')
      return job.enqueue({ who: 'ada' }, { tx })
    })
    expect(await (handle as Awaited<ReturnType<typeof job.enqueue>>).result()).toBe('hello ada')
    expect(effects(database)).toEqual(['committed'])
    await hf.close()
    expect(audit(database)).toEqual([])
  })

  test('is not there if it rolls back', async () => {
    const { database, hf } = openApp(folder, library)
    const job = hf.job({ name: 'greet', run: () => 1 })
    let id = ''
    const undone = transact(database as Database.Database, async (tx) => {
      note(database, 'undone')
      ;({ id } = await job.enqueue(undefined, { tx }))
      await job.enqueueMany([undefined, undefined], { tx })
      throw new Error('undo')
    })
    await expect(undone).rejects.toThrow('undo')
    expect(await job.get(id)).toBeNull()
    expect(effects(database)).toEqual([])
    expect(await hf.queues()).toMatchObject([{ counts: { ready: 0 } }])
    await hf.close()
    expect(audit(database)).toEqual([])
  })

  test('meets the holder of its unique key, also one of the same transaction', async () => {
    const { database, hf } = openApp(folder, library)
    const job = hf.job({ name: 'once', run: () => 1, unique: () => ({ key: 'k' }) })
    const [first, second] = (await transact(database as Database.Database, async (tx) => [
      await job.enqueue(undefined, { tx }),
      await job.enqueue(undefined, { tx }),
    ])) as Awaited<ReturnType<typeof job.enqueue>>[]
    expect(second).toMatchObject({ id: first?.id, duplicate: true })
    expect(await job.enqueue()).toMatchObject({ id: first?.id, duplicate: true })
    await hf.close()
    expect(audit(database)).toEqual([])
  })
})

describe.each(synchronous)('enqueueSync in a transaction of %s', (_name, library, transact) => {
  test('is a part of it', async () => {
    const { database, hf } = openApp(folder, library)
    const job = hf.job({
      name: 'greet',
      input: z.object({ who: z.string() }),
      run: ({ input }) => `hello ${input.who}`,
    })
    await using _worker = await hf.work()
    const enqueue = (tx: SqliteTx) => job.enqueueSync({ who: 'ada' }, { tx, priority: 'high' })
    const handle = transact(database as Database.Database, enqueue) as ReturnType<typeof enqueue>
    expect(await handle.result()).toBe('hello ada')

    const undo = () =>
      transact(database as Database.Database, (tx) => {
        enqueue(tx)
        throw new Error('undo')
      })
    expect(undo).toThrow('undo')
    expect(await hf.queues()).toMatchObject([{ counts: { completed: 1, ready: 0, running: 0 } }])
    await hf.close()
    expect(audit(database)).toEqual([])
  })

  test('works before the store is opened, and makes the tables in that transaction', async () => {
    const { database, hf } = openApp(folder, library)
    const job = hf.job({ name: 'greet', run: () => 'done' })
    const undo = () =>
      transact(database as Database.Database, (tx) => {
        job.enqueueSync(undefined, { tx })
        throw new Error('undo')
      })
    expect(undo).toThrow('undo')
    const tables = () =>
      database.prepare("select name from sqlite_schema where name like 'holdfast%'").all().length
    expect(tables()).toBe(0)
    const enqueue = (tx: SqliteTx) => job.enqueueSync(undefined, { tx })
    const handle = transact(database as Database.Database, enqueue) as ReturnType<typeof enqueue>
    expect(tables()).toBeGreaterThan(10)
    await using _worker = await hf.work()
    expect(await handle.result()).toBe('done')
    await hf.close()
  })
})

describe('enqueueSync', () => {
  const open = () => {
    const { database, hf } = openApp(folder, betterSqlite)
    return { database: database as Database.Database, hf }
  }
  const codeOf = (work: () => unknown): unknown => {
    try {
      return work()
    } catch (error) {
      return (error as { readonly code?: unknown }).code
    }
  }

  test('refuses an input that the schema refuses, and the transaction can go on', async () => {
    const { database, hf } = open()
    const job = hf.job({ name: 'greet', input: z.object({ who: z.string() }), run: () => 1 })
    database.transaction(() => {
      expect(codeOf(() => job.enqueueSync({ who: 1 as never }, { tx: database }))).toBe('HF_INVALID_INPUT')
      job.enqueueSync({ who: 'ada' }, { tx: database })
    })()
    expect(await hf.queues()).toMatchObject([{ counts: { ready: 1 } }])
    await hf.close()
  })

  test('refuses a schema that validates asynchronously', async () => {
    const { database, hf } = open()
    const input = z.string().refine(() => Promise.resolve(true))
    const job = hf.job({ name: 'slow', input, run: () => 1 })
    database.transaction(() => {
      expect(() => job.enqueueSync('x', { tx: database })).toThrow(
        'The schema of job "slow" validates asynchronously.',
      )
      expect(codeOf(() => job.enqueueSync('x', { tx: database }))).toBe('HF_BAD_OPTION')
    })()
    await hf.close()
  })

  test('refuses a call without { tx }, a Kysely transaction, and a store that cannot', async () => {
    const { database, hf } = open()
    const job = hf.job({ name: 'greet', run: () => 1 })
    expect(() => job.enqueueSync(undefined, {} as never)).toThrow(
      'enqueueSync() of job "greet" was given no { tx }.',
    )
    await new Kysely({ dialect: new SqliteDialect({ database }) }).transaction().execute(async (tx) => {
      expect(() => job.enqueueSync(undefined, { tx: tx as never })).toThrow('which is asynchronous')
    })
    await hf.close()
    database.transaction(() => {
      expect(codeOf(() => job.enqueueSync(undefined, { tx: database }))).toBe('HF_CLOSED')
    })()
    const other = holdfast({ store: memoryStore(), logger: false })
    const elsewhere = other.job({ name: 'greet', run: () => 1 })
    expect(codeOf(() => elsewhere.enqueueSync(undefined, { tx: database }))).toBe('HF_NO_TRANSACTIONS')
    await other.close()
  })
})

describe('a transaction of the caller', () => {
  test('reads and writes as usual although its handle gives bigints', async () => {
    const { database, hf } = openApp(folder, betterSqlite)
    ;(database as Database.Database).defaultSafeIntegers(true)
    const job = hf.job({ name: 'once', run: () => 1, unique: () => ({ key: 'k', for: '1h' }) })
    await byStatement(database as Database.Database, async (tx) => {
      await job.enqueue(undefined, { tx })
      await job.enqueue(undefined, { tx })
    })
    await hf.close()
    expect(audit(database)).toEqual([])
  })

  test('loses nothing of its own to a job that is refused', async () => {
    const { database, hf } = openApp(folder, betterSqlite)
    const job = hf.job({ name: 'greet', run: () => 1 })
    const refused = await byStatement(database as Database.Database, async (tx) => {
      note(database, 'kept')
      return thrownBy(job.enqueue(undefined, { tx, at: new Date(8.64e15), in: '1s' } as never))
    })
    expect(refused).toMatchObject({ code: 'HF_BAD_OPTION' })
    expect(effects(database)).toEqual(['kept'])
    await hf.close()
  })

  test('keeps nothing of a flush that fails midway', async () => {
    const database = folder.open(betterSqlite)
    database.exec('create table effects (what text)')
    const store = sqliteStore({ database, durability: 'normal' })
    await store.open()
    const ids = makeIds(systemClock, systemRandom)
    const job = newJob()
    const refused = await byStatement(database as Database.Database, async (tx) => {
      note(database, 'kept')
      return thrownBy(store.enqueue({ id: ids.flush(), jobs: [newJob(), job, job], tx }))
    })
    expect(refused).toBeInstanceOf(Error)
    expect(effects(database)).toEqual(['kept'])
    expect((await store.admin.list({ limit: 10, after: null })).jobs).toEqual([])
    await store.close()
    expect(audit(database)).toEqual([])
  })

  test('that is open elsewhere holds a step up, and the event loop goes on', async () => {
    const { database, hf } = openApp(folder, betterSqlite)
    const job = hf.job({ name: 'greet', run: () => 1 })
    await hf.queues()
    database.exec('begin immediate')
    const enqueued = job.enqueue()
    let isEnqueued = false
    void enqueued.then(() => (isEnqueued = true))
    for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
    expect(isEnqueued).toBe(false)
    database.exec('commit')
    expect((await enqueued).outcome).toBe('inserted')
    await hf.close()
  })

  test.each(sqliteLibraries)(
    'wakes listeners here and elsewhere once it has committed: $name',
    async (library) => {
      const { database, hf } = openApp(folder, library)
      const job = hf.job({ name: 'greet', run: () => 1 })
      await hf.queues()
      const stores = [sqliteStore({ database }), sqliteStore({ database })] as const
      const hints: string[] = []
      const heard = stores.map(
        (store) =>
          new Promise<void>((resolve) => void store.subscribe(({ type }) => (hints.push(type), resolve()))),
      )
      await Promise.all(stores.map((store) => store.admin.queues()))
      database.exec('begin')
      job.enqueueSync(undefined, { tx: database })
      for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
      expect(hints).toEqual([])
      database.exec('commit')
      await Promise.all(heard)
      expect(new Set(hints)).toEqual(new Set(['ready']))
      await Promise.all([...stores, hf].map((one) => one.close()))
    },
  )

  test('shares events with the jobs of their subscribers', async () => {
    const { database, hf } = openApp(folder, betterSqlite)
    const paid = hf.event('invoice.paid')
    const seen = new Promise((resolve) => {
      hf.subscribe({ name: 'mail', to: paid, run: () => resolve('seen') })
    })
    await using _worker = await hf.work()
    await byStatement(database as Database.Database, (tx) => paid.publish(undefined, { tx }))
    expect(await seen).toBe('seen')
    await hf.close()
  })
})

test('two stores of one database keep their jobs apart by their prefixes', async () => {
  const database = folder.open(betterSqlite)
  const [one, two] = (['a_', 'b_'] as const).map((prefix) =>
    holdfast({ store: sqliteStore({ database, prefix, durability: 'normal' }), logger: false }),
  )
  const { id } = await one!.job({ name: 'greet', run: () => 1 }).enqueue()
  expect(await one!.queues()).toMatchObject([{ counts: { ready: 1 } }])
  expect(await two!.queues()).toMatchObject([{ counts: { ready: 0 } }])
  await Promise.all([one!.close(), two!.close()])
  expect(database.prepare('select id from a_job').all()).toEqual([{ id }])
  // The file's own marks are its owner's.
  const owner = (database as Database.Database).pragma('application_id', { simple: true })
  const version = (database as Database.Database).pragma('user_version', { simple: true })
  expect([owner, version]).toEqual([0, 0])
})

test('Kysely can run statements of its own and enqueue several jobs at once', async () => {
  const { database, hf } = openApp(folder, betterSqlite)
  const job = hf.job({ name: 'greet', run: () => 1 })
  const kysely = new Kysely({ dialect: new SqliteDialect({ database: database as Database.Database }) })
  await kysely.transaction().execute(async (tx) => {
    await Promise.all([
      job.enqueue(undefined, { tx }),
      tx.executeQuery(CompiledQuery.raw("insert into effects values ('by kysely')")),
      job.enqueue(undefined, { tx }),
      job.enqueueMany([undefined, undefined], { tx }),
    ])
  })
  expect(effects(database)).toEqual(['by kysely'])
  expect(await hf.queues()).toMatchObject([{ counts: { ready: 4 } }])
  await hf.close()
})
