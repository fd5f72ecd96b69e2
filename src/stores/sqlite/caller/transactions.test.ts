/** The transactions of one library, without Holdfast's client. test/transactions has them with every library and all around. */
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { COMPLETED, newFlushId, newJob, newWorkerId, UNKNOWN_TOKEN } from '../../conformance/support.ts'
import type { CommitRequest, Store } from '../../store.ts'
import { sqliteStore } from '../sqlite-store.ts'
import type { SqliteDatabase } from './handle.ts'

let folder: string
let database: DatabaseSyncInstance
let store: Store

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-transactions-'))
  database = new DatabaseSync(join(folder, 'app.db'))
  database.exec('pragma journal_mode = wal; create table effects (what text)')
  store = sqliteStore({ database })
  await store.open()
})

afterEach(async () => {
  await store.close()
  database.close()
  rmSync(folder, { recursive: true, force: true })
})

const note = (tx: unknown, what: string): void =>
  (tx as SqliteDatabase).exec(`insert into effects values ('${what}')`) as undefined
const effects = (): unknown[] => database.prepare('select what from effects').all()

function transactions(): NonNullable<Store['transactions']> {
  if (store.transactions === undefined) throw new Error('The store has no transactions.')
  return store.transactions
}

/** A job of a worker that may settle it. */
async function claimed(): Promise<CommitRequest> {
  const [job, worker] = [newJob(), newWorkerId()]
  await store.register(worker, 30_000, 1)
  await store.enqueue({ id: newFlushId(), jobs: [job] })
  const claim = { queue: job.queue, limit: 1, suspects: true }
  const { leases } = await store.cycle({ worker, settle: [], claim })
  const token = leases[0]?.token ?? UNKNOWN_TOKEN
  return { worker, token, position: 0, runMs: () => 1, forget: false }
}

describe('a commit', () => {
  test('writes the effect and settles the job', async () => {
    await transactions().commit(await claimed(), (tx) => {
      note(tx, 'paid')
      return Promise.resolve(COMPLETED)
    })
    expect(effects()).toEqual([{ what: 'paid' }])
    expect((await store.admin.queues())[0]?.counts).toMatchObject({ running: 0, completed: 1 })
  })

  test('of a lease that was lost writes nothing', async () => {
    const request = { ...(await claimed()), token: UNKNOWN_TOKEN }
    const committed = transactions().commit(request, (tx) => {
      note(tx, 'paid twice')
      return Promise.resolve(COMPLETED)
    })
    await expect(committed).rejects.toMatchObject({ code: 'HF_LEASE_LOST' })
    expect(effects()).toEqual([])
  })
})

describe("a step in the caller's transaction", () => {
  test('that fails midway leaves nothing behind, and keeps what the caller wrote', async () => {
    const taken = newJob()
    await store.enqueue({ id: newFlushId(), jobs: [taken] })
    database.exec('begin immediate')
    note(database, 'mine')
    const flush = { id: newFlushId(), jobs: [newJob(), taken], tx: database }
    expect(() => transactions().enqueueSync?.(flush)).toThrow()
    transactions().enqueueSync?.({ id: newFlushId(), jobs: [newJob()], tx: database })
    database.exec('commit')
    expect(effects()).toEqual([{ what: 'mine' }])
    const { jobs } = await store.admin.list({ limit: 10, after: null })
    expect(jobs).toHaveLength(2)
    expect((await store.admin.queues())[0]?.counts.ready).toBe(2)
  })
})
