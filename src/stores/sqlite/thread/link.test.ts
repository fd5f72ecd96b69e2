import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker as Thread } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Signal } from '../../../../test/support/signal.ts'
import { readSql } from '../engine/db.ts'
import { storeOnThread } from '../sqlite-store.ts'
import type { Store, WakeUp } from '../../store.ts'
import { ThreadLink } from './link.ts'
import type { StoreData } from './protocol.ts'

let folder: string
let threads: Thread[]
/** Of each thread. Listened for from its start: its last message and its end may come in one turn. */
let ends: Promise<unknown>[]
const note = (thread: Thread): void => {
  threads.push(thread)
  ends.push(once(thread, 'exit'))
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-link-'))
  threads = []
  ends = []
  process.on('worker', note)
})

afterEach(() => {
  process.off('worker', note)
  rmSync(folder, { recursive: true, force: true })
})

function data(parts: Partial<StoreData> = {}): StoreData {
  const directory = join(folder, 'store')
  return { directory, durability: 'normal', clock: null, maxLook: null, sql: null, ...parts }
}

function newStore(): Store {
  return storeOnThread(data(), () => undefined)
}

/** The one that was started last. */
function newest(): Thread {
  const thread = threads.at(-1)
  if (thread === undefined) throw new Error('No thread was started.')
  return thread
}

describe('a store whose thread has died', () => {
  test('hears of other processes again after the next call, and of what it missed', async () => {
    const signal = new Signal()
    const heard: WakeUp[] = []
    const [store, other] = [newStore(), newStore()]
    await store.subscribe((hint) => {
      heard.push(hint)
      signal.notify()
    })
    await newest().terminate()
    await ends[0]
    await other.admin.setPaused('missed', true)
    await store.admin.queues()
    await signal.until(() => heard.some((hint) => hint.type === 'paused' && hint.queue === 'missed'))
    await other.admin.setPaused('later', true)
    await signal.until(() => heard.some((hint) => hint.type === 'paused' && hint.queue === 'later'))
    await Promise.all([store.close(), other.close()])
  })

  test('answers the calls that it had taken with an outage', async () => {
    const store = newStore()
    await store.open()
    const answers = Promise.allSettled([store.admin.queues(), store.admin.queues()])
    await newest().terminate()
    const outage = { status: 'rejected', reason: { code: 'HF_STORE_UNREACHABLE' } }
    expect(await answers).toMatchObject([outage, outage])
    expect(await store.admin.queues()).toEqual([])
    await store.close()
  })
})

describe('a store', () => {
  test('is not disturbed by the end of the thread that could not open it', async () => {
    writeFileSync(data().directory, '')
    const store = newStore()
    await expect(store.open()).rejects.toMatchObject({ code: 'HF_BAD_STORE' })
    rmSync(data().directory)
    const opening = store.open()
    await ends[0]
    await opening
    expect(await store.admin.queues()).toEqual([])
    expect(threads).toHaveLength(2)
    await store.close()
  })

  test('does not keep the process running for a call that could not be sent', async () => {
    const store = newStore()
    await store.open()
    const [ref, unref] = [vi.spyOn(newest(), 'ref'), vi.spyOn(newest(), 'unref')]
    const uncopyable = { limit: 1, after: null, name: () => undefined }
    await expect(store.admin.list(uncopyable as never)).rejects.toThrow('could not be cloned')
    await store.admin.queues()
    expect(ref.mock.calls.length).toBe(unref.mock.calls.length)
    await store.close()
  })

  test('closes while its opening hangs', async () => {
    const sql = readSql()
    const counting = `create table slow as with recursive n(x) as (select 1 union all select x + 1 from n limit 8000000) select max(x) from n;`
    const link = new ThreadLink({
      data: data({ sql: { ...sql, tables: counting + sql.tables } }),
      onNotice: () => undefined,
      onHint: () => undefined,
      closeMs: 20,
    })
    const started = once(process, 'worker')
    const opening = link.open().catch((error: unknown) => error)
    await started
    let hasEnded = false
    const ended = once(newest(), 'exit').then(() => (hasEnded = true))
    await link.close()
    expect(hasEnded).toBe(false)
    await ended
    expect(await opening).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
  })
})
