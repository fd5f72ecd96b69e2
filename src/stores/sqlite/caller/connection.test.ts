import { DatabaseSync } from '@photostructure/sqlite'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventually } from '../../../../test/support/until.ts'
import { newFlushId, newJob } from '../../conformance/support.ts'
import type { Store } from '../../store.ts'
import { MAX_LOG_BYTES } from '../log-keeper.ts'
import { sqliteStore } from '../sqlite-store.ts'

let folder: string
let fails: string | undefined
let opened: number

/** As the caller has it: a library whose connections fail once at one statement, if they are told to. */
class Library extends DatabaseSync {
  constructor(path: string) {
    super(path)
    opened++
  }

  override exec(sql: string): void {
    if (sql === fails) {
      fails = undefined
      throw Object.assign(new Error('disk I/O error'), { errcode: 0x40a })
    }
    super.exec(sql)
  }
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-caller-'))
  opened = 0
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

const path = (name = 'app.db'): string => join(folder, name)

async function openWith(settings = '', name = 'app.db'): Promise<{ database: Library; store: Store }> {
  const database = new Library(path(name))
  database.exec(`pragma journal_mode = wal; ${settings}`)
  const store = sqliteStore({ database, durability: 'normal' })
  await store.open()
  return { database, store }
}

test('a disk that fails once is an outage, and another connection is opened', async () => {
  const { database, store } = await openWith()
  const job = newJob()
  const flush = { id: newFlushId(), jobs: [job] }
  const hints: string[] = []
  await store.subscribe(({ type }) => hints.push(type))
  fails = 'commit'
  await expect(store.enqueue(flush)).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
  expect(opened).toBe(2)
  await store.enqueue(flush)
  expect(opened).toBe(3)
  expect(await store.admin.get(job.id)).toMatchObject({ id: job.id })
  // Commits of others are seen on the new connection.
  hints.length = 0
  const other = sqliteStore({ database, durability: 'normal' })
  await other.enqueue({ id: newFlushId(), jobs: [newJob()] })
  await eventually(() => expect(hints).toContain('ready'))
  await Promise.all([store.close(), other.close()])
  database.close()
})

test('a connection that cannot be opened again is an outage until it can', async () => {
  const { database, store } = await openWith()
  fails = 'commit'
  await expect(store.admin.setPaused('default', true)).rejects.toThrow('disk I/O error')
  fails = 'pragma synchronous = normal'
  await expect(store.admin.queues()).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
  expect(await store.admin.queues()).toEqual([])
  await store.close()
  database.close()
})

const logBytes = (name = 'app.db'): number =>
  statSync(`${path(name)}-wal`, { throwIfNoEntry: false })?.size ?? 0
const PAYLOAD = JSON.stringify('x'.repeat(20_000))

/** A reader keeps the log from being written back while jobs are written. */
async function growLog(store: Store, name = 'app.db'): Promise<() => void> {
  const reader = new DatabaseSync(path(name))
  reader.exec('begin')
  reader.prepare('select * from holdfast_queue').all()
  while (logBytes(name) <= MAX_LOG_BYTES)
    await store.enqueue({
      id: newFlushId(),
      jobs: Array.from({ length: 100 }, () => ({ ...newJob(), payload: PAYLOAD })),
    })
  return () => {
    reader.exec('commit')
    reader.close()
  }
}

test('a log that became large is truncated when nobody reads it any more', async () => {
  const { database, store } = await openWith()
  const end = await growLog(store)
  end()
  await eventually(() => expect(logBytes()).toBe(0))
  await store.close()
  database.close()
})

test('a caller who has switched checkpoints off keeps the log', async () => {
  const { database, store } = await openWith('pragma wal_autocheckpoint = 0')
  const end = await growLog(store)
  end()
  const before = logBytes()
  // Another store truncates its log later, and so this one has had the time.
  const other = await openWith('', 'other.db')
  const endOther = await growLog(other.store, 'other.db')
  await store.admin.setPaused('default', true)
  endOther()
  await eventually(() => expect(logBytes('other.db')).toBe(0))
  expect(logBytes()).toBeGreaterThanOrEqual(before)
  await Promise.all([store.close(), other.store.close()])
  database.close()
  other.database.close()
})
