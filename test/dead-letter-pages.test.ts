/** Lists of dead letters, and their filters, on a store that examines only a few jobs per call. */
import { expect, test } from 'vitest'
import { Fatal } from '../src/errors.ts'
import { holdfast } from '../src/holdfast.ts'
import { systemClock } from '../src/std/clock.ts'
import { systemRandom } from '../src/std/random.ts'
import { storeOn } from '../src/stores/memory/memory-store.ts'
import { MemoryState } from '../src/stores/memory/state.ts'
import type { Store } from '../src/stores/store.ts'

/** Counts the calls of `list`. */
function counted(maxScan: number): { store: Store; calls: () => number } {
  const state = new MemoryState({ clock: systemClock, random: systemRandom, maxFinished: 1_000, maxScan })
  const real = storeOn(state)
  let calls = 0
  const list: Store['admin']['list'] = (query) => {
    calls++
    return real.admin.list(query)
  }
  return { store: { ...real, admin: { ...real.admin, list } }, calls: () => calls }
}

async function withLetters(store: Store) {
  const hf = holdfast({ store, logger: false })
  const job = hf.job({ name: 'doomed', run: () => Promise.reject(new Fatal('no')) })
  const failed = new Promise<void>((resolve) => {
    let count = 0
    hf.on('job.failed', () => {
      if (++count === 6) resolve()
    })
  })
  const ids: string[] = []
  for (let count = 0; count < 6; count++)
    ids.push((await job.enqueue(undefined, { tags: count % 3 === 0 ? ['vip'] : ['plain'] })).id)
  const worker = await hf.work()
  await failed
  await worker.stop()
  return { hf, ids: ids.toReversed() }
}

test('a page is filled although the store looks at few jobs in a call', async () => {
  const { store, calls } = counted(2)
  const { hf, ids } = await withLetters(store)
  const before = calls()
  const { letters, next } = await hf.deadLetters.list({ tags: ['vip'], limit: 2 })
  expect(letters.map(({ id }) => id)).toEqual([ids[2], ids[5]])
  expect(next).toBeNull()
  expect(calls() - before).toBeGreaterThanOrEqual(3)
  expect((await hf.deadLetters.groups()).map(({ count }) => count)).toEqual([6])
  expect(await hf.deadLetters.replay({ tags: ['vip'] })).toMatchObject({ changed: 2, cursor: null })
  await hf.close()
})

test('letters are found by tag, time of enqueue and the beginning of their id', async () => {
  const { hf, ids } = await withLetters(counted(1_000).store)
  const found = async (filter: Parameters<typeof hf.deadLetters.list>[0]): Promise<string[]> =>
    (await hf.deadLetters.list(filter)).letters.map(({ id }) => id)
  expect(await found({ tags: ['vip', 'plain'] })).toEqual(ids)
  expect(await found({ tags: ['none'] })).toEqual([])
  expect(await found({ idPrefix: ids[0]!.slice(0, 36) })).toEqual([ids[0]])
  const { enqueuedAt } = (await hf.deadLetters.get(ids[0]!))!
  expect(await found({ enqueuedSince: enqueuedAt })).toContain(ids[0])
  expect(await found({ enqueuedUntil: new Date(0) })).toEqual([])
  await expect(found({ idPrefix: 'X' })).rejects.toMatchObject({ code: 'HF_BAD_FILTER' })
  await hf.close()
})
