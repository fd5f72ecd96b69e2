import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { eventually } from '../../../../test/support/until.ts'
import { newFlushId, newJob } from '../../conformance/support.ts'
import { loadDriver, type Database, type Driver } from '../driver.ts'
import { readSql } from '../engine/db.ts'
import type { Call, Outcome } from '../engine/runner.ts'
import type { Store } from '../../store.ts'
import { sqliteStore } from '../sqlite-store.ts'
import { Connection } from './connection.ts'

const real = await loadDriver()
let folder: string
let directory: string
const open = () => sqliteStore({ directory, durability: 'normal', onNotice: () => undefined })

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-connection-'))
  directory = join(folder, 'store')
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('a database that is deleted while it is open', () => {
  const missing = expect.objectContaining({
    code: 'HF_STORE_MISSING',
    message: expect.stringContaining('was deleted or replaced'),
    hint: expect.stringContaining('enqueue again'),
  })

  test('is told of by the next enqueue, and the one after that makes another', async () => {
    const store = open()
    await store.open()
    rmSync(directory, { recursive: true })
    const job = newJob()
    await expect(store.enqueue({ id: newFlushId(), jobs: [job] })).rejects.toThrow(missing)
    await store.enqueue({ id: newFlushId(), jobs: [job] })
    const other = open()
    expect(await other.admin.get(job.id)).toMatchObject({ id: job.id })
    await Promise.all([store.close(), other.close()])
  })

  test('is told of if another has taken its place', async () => {
    const [store, other] = [open(), open()]
    await store.open()
    renameSync(directory, join(folder, 'away'))
    await other.open()
    await expect(store.admin.setPaused('default', true)).rejects.toThrow(missing)
    await other.admin.setPaused('default', true)
    expect(await store.admin.queues()).toMatchObject([{ queue: 'default', paused: true }])
    await Promise.all([store.close(), other.close()])
  })

  test('is an error if only the file is gone, which the bell beside it remembers', async () => {
    const store = open()
    await store.open()
    for (const name of ['holdfast.db', 'holdfast.db-wal', 'holdfast.db-shm']) rmSync(join(directory, name))
    await expect(store.admin.queues()).rejects.toThrow(missing)
    await expect(store.admin.queues()).rejects.toMatchObject({ code: 'HF_STORE_DAMAGED' })
    await store.close()
  })
})

describe('a log that is deleted', () => {
  const enqueued = async (store: Store) => {
    const job = newJob()
    await store.enqueue({ id: newFlushId(), jobs: [job] })
    return job.id
  }

  test('while one store has it open is written into the database', async () => {
    const notices: string[] = []
    const store = sqliteStore({ directory, durability: 'normal', onNotice: (line) => notices.push(line) })
    const ids = [await enqueued(store)]
    rmSync(join(directory, 'holdfast.db-wal'))
    await eventually(async () => {
      ids.push(await enqueued(store))
      expect(notices).toEqual([expect.stringContaining('nothing is lost')])
    })
    ids.push(await enqueued(store))
    const other = open()
    for (const id of ids) expect(await other.admin.get(id)).toMatchObject({ id })
    await Promise.all([store.close(), other.close()])
  })

  test('while several have it open is told of, and saved by each of them', async () => {
    const stores = [open(), open()] as const
    const ids = [await enqueued(stores[0]), await enqueued(stores[1])]
    rmSync(join(directory, 'holdfast.db-wal'))
    // A deletion is noticed by the first call of each 100 ms, at most.
    await eventually(async () => {
      ids.push(await enqueued(stores[1]))
      await expect(stores[0].admin.queues()).rejects.toMatchObject({ code: 'HF_STORE_DAMAGED' })
    })
    await expect(stores[0].admin.queues()).rejects.toThrow('-shm is still there')
    await Promise.all(stores.map((store) => store.close()))
    const next = open()
    for (const id of ids) expect(await next.admin.get(id)).toMatchObject({ id })
    await next.close()
  })

  test('while nobody has it open is told of at the opening', async () => {
    const store = open()
    await enqueued(store)
    await store.close()
    // As a process leaves it that is killed.
    writeFileSync(join(directory, 'holdfast.db-shm'), '')
    const next = open()
    await expect(next.open()).rejects.toMatchObject({ code: 'HF_STORE_DAMAGED' })
    rmSync(join(directory, 'holdfast.db-shm'))
    await next.open()
    await next.close()
  })
})

describe('a disk that fails once', () => {
  let fails: string | undefined
  let opened: number

  /** Its databases fail at one statement, if they are told to. */
  const driver: Driver = {
    library: real.library,
    DatabaseSync: class implements Database {
      readonly #database: Database
      constructor(path: string) {
        opened++
        this.#database = new real.DatabaseSync(path)
      }
      exec(sql: string): void {
        if (sql === fails) {
          fails = undefined
          throw Object.assign(new Error('disk I/O error'), { errcode: 0x40a })
        }
        this.#database.exec(sql)
      }
      prepare = (sql: string) => this.#database.prepare(sql)
      close = () => this.#database.close()
    },
  }

  function outcome(connection: Connection, call: Call): Outcome | undefined {
    return connection.run([call]).outcomes[0]?.[1]
  }

  test.each(['commit', 'begin immediate'])('at %s is an outage, and the database is opened again', (sql) => {
    opened = 0
    let reopened = 0
    const connection = new Connection({
      driver,
      data: { directory, durability: 'normal', clock: null, maxLook: null, sql: null },
      sql: readSql(),
      onNotice: () => undefined,
      onBell: () => undefined,
      onReopened: () => reopened++,
    })
    connection.open()
    const call: Call = { name: 'setPaused', args: ['default', true] }
    fails = sql
    const failed = outcome(connection, call)
    // A transaction that could not begin is tried once more.
    if (sql === 'commit') expect(failed).toMatchObject({ error: { code: 'HF_STORE_UNREACHABLE' } })
    expect(outcome(connection, call)).toEqual({ value: undefined })
    expect([opened, reopened]).toEqual(sql === 'commit' ? [2, 1] : [1, 0])
    connection.close()
  })

  test('while it is opened again says so until it works', () => {
    opened = 0
    const connection = new Connection({
      driver,
      data: { directory, durability: 'normal', clock: null, maxLook: null, sql: null },
      sql: readSql(),
      onNotice: () => undefined,
      onBell: () => undefined,
      onReopened: () => undefined,
    })
    connection.open()
    const call: Call = { name: 'setPaused', args: ['default', true] }
    fails = 'commit'
    outcome(connection, call)
    fails = 'pragma journal_mode = wal'
    expect(outcome(connection, call)).toMatchObject({
      error: { code: 'HF_STORE_UNREACHABLE', hint: expect.stringContaining('Check the disk') as string },
    })
    expect(outcome(connection, call)).toEqual({ value: undefined })
    connection.close()
  })
})
