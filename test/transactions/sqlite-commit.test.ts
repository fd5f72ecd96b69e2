/** Exactly-once effects in a database of the caller's: what a handler wrote and the completion of its job, both or neither. */
import type BetterSqlite from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { makeIds } from '../../src/job/ids.ts'
import { systemClock } from '../../src/std/clock.ts'
import { systemRandom } from '../../src/std/random.ts'
import { newJob } from '../../src/stores/conformance/support.ts'
import { storeInDatabase } from '../../src/stores/sqlite/caller/caller-store.ts'
import { SharedClock } from '../../src/stores/sqlite/thread/shared-clock.ts'
import type { CompletedSettlement, Transactions } from '../../src/stores/store.ts'
import {
  audit,
  betterSqlite,
  SqliteFolder,
  sqliteLibraries,
  type TestHandle,
} from '../support/sqlite-database.ts'
import { thrownBy } from '../support/virtual.ts'
import { effects, note, openApp } from './sqlite-support.ts'

const folder = new SqliteFolder()
afterAll(() => folder.remove())

const NO_RETRY = { attempts: 1 }

describe.each(sqliteLibraries)('commit with $name', (library) => {
  let app: ReturnType<typeof openApp>
  beforeEach(() => {
    app = openApp(folder, library)
    return async () => {
      await app.hf.close()
      expect(audit(app.database)).toEqual([])
    }
  })

  test('writes the effect and completes the job with what it resolves to, whatever the handler does then', async () => {
    const job = app.hf.job({
      name: 'pay',
      async run({ commit }) {
        await commit(async (tx: TestHandle) => {
          note(tx, 'paid')
          return { paid: true }
        })
        throw new Error('too late to fail')
      },
    })
    await using _worker = await app.hf.work()
    expect(await (await job.enqueue()).result()).toEqual({ paid: true })
    expect(effects(app.database)).toEqual(['paid'])
  })

  test('keeps nothing of a write that throws, and the job fails', async () => {
    const job = app.hf.job({
      name: 'pay',
      retry: NO_RETRY,
      run: ({ commit }) =>
        commit(async (tx: TestHandle) => {
          note(tx, 'not paid')
          throw new Error('no money')
        }),
    })
    await using _worker = await app.hf.work()
    expect(await thrownBy((await job.enqueue()).result())).toMatchObject({ code: 'HF_JOB_FAILED' })
    expect(effects(app.database)).toEqual([])
  })

  test('enqueues what follows in the same transaction', async () => {
    const next = app.hf.job({ name: 'next', run: () => 'followed' })
    const job = app.hf.job({
      name: 'pay',
      run: ({ commit }) =>
        commit(async (tx: TestHandle) => {
          const one = next.enqueueSync(undefined, { tx })
          const two = await next.enqueue(undefined, { tx })
          return [one.id, two.id]
        }),
    })
    await using _worker = await app.hf.work()
    const ids = await (await job.enqueue()).result()
    for (const id of ids) expect(await (await next.get(id))?.result()).toBe('followed')
  })

  test('gives up a write that takes longer than a second, and what it does later is refused', async () => {
    let goOn = (): void => undefined
    const held = new Promise<void>((resolve) => (goOn = resolve))
    let late: Promise<unknown> | undefined
    let error: unknown
    const job = app.hf.job({
      name: 'pay',
      async run({ commit }) {
        const committed = commit(async (tx: TestHandle) => {
          note(tx, 'too slow')
          late = held.then(() => thrownBy(Promise.resolve().then(() => note(tx, 'late'))))
          await late
        })
        error = await thrownBy(committed)
        return 'without the effect'
      },
    })
    const other = app.hf.job({ name: 'other', run: () => 'other' })
    await using _worker = await app.hf.work()
    const handle = await job.enqueue()
    // Enqueues wait meanwhile; the event loop does not.
    expect(await (await other.enqueue()).result()).toBe('other')
    expect(await handle.result()).toBe('without the effect')
    goOn()
    expect(await late).toBeInstanceOf(Error)
    expect(error).toMatchObject({
      code: 'HF_ATTEMPT_TIMEOUT',
      message: expect.stringContaining('1000 ms') as string,
    })
    expect(effects(app.database)).toEqual([])
  })

  test('gives up a write that reads rows meanwhile, and gives the write lock back when it has ended', async () => {
    let goOn = (): void => undefined
    const held = new Promise<void>((resolve) => (goOn = resolve))
    const job = app.hf.job({
      name: 'pay',
      retry: NO_RETRY,
      async run({ commit }) {
        const committed = commit(async (tx: TestHandle) => {
          note(tx, 'too slow')
          for (const _row of tx.prepare('select what from effects').iterate()) await held
        })
        const error = await thrownBy(committed)
        goOn()
        throw error
      },
    })
    await using _worker = await app.hf.work()
    expect(await thrownBy((await job.enqueue()).result())).toMatchObject({
      code: 'HF_JOB_FAILED',
      message: expect.stringContaining('longer than 1000 ms') as string,
    })
    expect(effects(app.database)).toEqual([])
  })

  test('refuses a function that ends the transaction by itself', async () => {
    let error: unknown
    const job = app.hf.job({
      name: 'pay',
      async run({ commit }) {
        error = await thrownBy(commit(async (tx: TestHandle) => tx.exec('rollback')))
      },
    })
    await using _worker = await app.hf.work()
    await (await job.enqueue()).result()
    expect(error).toMatchObject({
      code: 'HF_BAD_OPTION',
      message: expect.stringContaining('was ended') as string,
    })
  })

  test('many at once are all written', async () => {
    const job = app.hf.job({
      name: 'pay',
      run: ({ commit, job: { id } }) => commit(async (tx: TestHandle) => note(tx, id)),
    })
    await using _worker = await app.hf.work({ concurrency: 10 })
    const handles = await Promise.all(Array.from({ length: 30 }, () => job.enqueue()))
    await Promise.all(handles.map((handle) => handle.result()))
    expect(new Set(effects(app.database))).toEqual(new Set(handles.map(({ id }) => id)))
    expect(effects(app.database)).toHaveLength(handles.length)
  })
})

test('Drizzle works on the handle that commit gives, with the foreign keys of the caller', async () => {
  const { database, hf } = openApp(folder, betterSqlite)
  const table = sqliteTable('effects', { what: text('what') })
  const job = hf.job({
    name: 'pay',
    run: ({ commit }) =>
      commit(async (tx: BetterSqlite.Database) => {
        drizzle(tx).insert(table).values({ what: 'by drizzle' }).run()
        return tx.pragma('foreign_keys', { simple: true })
      }),
  })
  await using _worker = await hf.work()
  const result = await (await job.enqueue()).result()
  expect(result).toBe((database as BetterSqlite.Database).pragma('foreign_keys', { simple: true }))
  expect(effects(database)).toEqual(['by drizzle'])
  await hf.close()
})

test.each(sqliteLibraries)('a commit of a lease that was lost keeps nothing: $name', async (library) => {
  const database = folder.open(library)
  database.exec('create table effects (what text)')
  const clock = new SharedClock()
  const store = storeInDatabase({ database, durability: 'normal' }, { clock })
  const transactions = store.transactions as Transactions
  const ids = makeIds(systemClock, systemRandom)
  const worker = ids.worker()
  await store.register(worker, 30_000)
  await store.enqueue({ id: ids.flush(), jobs: [newJob()] })
  const claim = { queue: 'default', limit: 1, suspects: true }
  const { leases } = await store.cycle({ worker, settle: [], claim })
  const token = leases[0]!.token
  const done: CompletedSettlement = { type: 'completed', result: null, resultDropped: false }
  const commit = (worker_ = worker) =>
    transactions.commit(
      { worker: worker_, token, position: 0, runMs: () => 1, forget: false },
      async (tx) => {
        note(tx as TestHandle, 'paid')
        return done
      },
    )
  expect(await thrownBy(commit(ids.worker()))).toMatchObject({ code: 'HF_LEASE_LOST' })
  clock.advance(31_000)
  await store.upkeep.rescue(10)
  expect(await thrownBy(commit())).toMatchObject({ code: 'HF_LEASE_LOST' })
  expect(effects(database)).toEqual([])
  await store.close()
  expect(audit(database)).toEqual([])
})
