import { afterAll, beforeAll, expect, test } from 'vitest'
import { SqliteBench } from '../../../../test/support/sqlite.ts'
import { newJob, newWorkerId } from '../../conformance/support.ts'
import type { StoreUnderTest } from '../../conformance/index.ts'
import type { Store } from '../../store.ts'

const bench = new SqliteBench()
let under: StoreUnderTest
const worker = newWorkerId()

beforeAll(async () => {
  under = await bench.open()
  await under.store.schedules.put('nightly', { spec: '{}', nextTick: 5 })
  await under.store.register(worker, 30_000, 1)
})

afterAll(async () => {
  await under.close()
  await bench.close()
})

const WRITES: readonly (readonly [what: string, write: (store: Store, count: number) => Promise<unknown>])[] =
  [
    ['a tick', ({ schedules }, count) => schedules.fire('nightly', count, 7, newJob())],
    ['the tick after it', ({ schedules }, count) => schedules.fire('nightly', 5, count, newJob())],
    ['the slots of a worker', (store, count) => store.register(newWorkerId(), 30_000, count)],
    ['the slots in a heartbeat', (store, atOnce) => store.heartbeat({ worker, strangers: [], atOnce })],
    ['the number of a heartbeat', (store, nth) => store.heartbeat({ worker, strangers: [], nth })],
  ]

// SQLite stores 2^53, and the library then refuses to read the row.
test.each(WRITES.flatMap(([what, write]) => [2 ** 53, NaN].map((count) => ({ what, write, count }))))(
  '$what cannot be $count',
  async ({ write, count }) => {
    const { store } = under
    await expect(write(store, count)).rejects.toMatchObject({ code: 'HF_STORE_REFUSED' })
    expect(await store.schedules.list()).toMatchObject({ schedules: [{ nextTick: 5, lastTick: null }] })
    expect(await store.admin.queues()).toEqual([])
    expect(await store.heartbeat({ worker, strangers: [] })).toMatchObject({ alive: true })
  },
)
