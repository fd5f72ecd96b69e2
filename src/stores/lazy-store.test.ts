import { afterEach, describe, expect, test } from 'vitest'
import { VirtualClock } from '../std/virtual-clock.ts'
import { seededRandom } from '../std/random.ts'
import { storeFrom } from './from-url.ts'
import { LazyStore } from './lazy-store.ts'
import { memoryStore } from './memory/index.ts'
import { postgresStore } from './postgres/index.ts'
import { redisStore } from './redis/index.ts'
import { sqliteStore } from './sqlite/index.ts'
import type { Store, Transactions } from './store.ts'

const clock = new VirtualClock()
const random = seededRandom(1)
const loaded: Store[] = []

const transactions: Transactions = {
  commit: () => Promise.reject(new Error('refused')),
}

function lazy(load?: () => Promise<Store>): LazyStore {
  const make = (): Promise<Store> => {
    const store: Store = { ...memoryStore({ clock, random }), transactions }
    loaded.push(store)
    return Promise.resolve(store)
  }
  return new LazyStore({ kind: 'lazy', transactional: true, load: load ?? make })
}

afterEach(() => {
  loaded.length = 0
})

describe('a store that is loaded when it is opened', () => {
  test('is loaded once, and then does what it is asked', async () => {
    const store = lazy()
    expect(loaded).toHaveLength(0)
    await Promise.all([store.open(), store.open()])
    await store.open()
    expect(loaded).toHaveLength(1)
    expect(await store.admin.queues()).toEqual([])
    expect(await store.schedules.list()).toMatchObject({ schedules: [] })
    expect(await store.notes.list('kind')).toEqual([])
    expect(await store.upkeep.promote(10)).toMatchObject({ promoted: 0 })
    await store.close()
  })

  test('refuses everything before that, but tells whether it has transactions', async () => {
    const store = lazy()
    expect(() => store.admin).toThrow('The lazy store has not been opened.')
    const early = store.transactions
    await store.open()
    await expect(early?.commit({} as never, () => Promise.reject(new Error('no')))).rejects.toThrow('refused')
    await store.close()
  })

  test('is loaded again after that failed', async () => {
    let tries = 0
    const store = lazy(() =>
      ++tries === 1
        ? Promise.reject(new Error('no such file'))
        : Promise.resolve(memoryStore({ clock, random })),
    )
    await expect(store.open()).rejects.toThrow('no such file')
    await store.open()
    expect(tries).toBe(2)
  })

  test('is not loaded for a close, and is closed if it is opened later', async () => {
    const store = lazy()
    await store.close()
    expect(loaded).toHaveLength(0)
    await expect(store.open()).rejects.toMatchObject({ code: 'HF_CLOSED' })
  })

  test.each([
    ['postgres://localhost/db', () => postgresStore({ url: 'postgres://localhost/db' })],
    ['redis://localhost', () => redisStore({ url: 'redis://localhost' })],
    ['file:.nowhere', () => sqliteStore({ directory: '.nowhere' })],
  ])('has what the store of %s has', (url, make) => {
    const [named, own] = [storeFrom(url, clock, random), make()]
    expect(named.kind).toBe(own.kind)
    expect(Object.keys(named.transactions ?? {}).sort()).toEqual(Object.keys(own.transactions ?? {}).sort())
    expect('keepAlive' in named).toBe('keepAlive' in own)
  })
})
