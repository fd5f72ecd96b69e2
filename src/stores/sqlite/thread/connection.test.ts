import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { newFlushId, newJob } from '../../conformance/support.ts'
import { sqliteStore } from '../sqlite-store.ts'

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
