import { describe, test } from 'vitest'
import { seededRandom } from '../../std/random.ts'
import { VirtualClock } from '../../std/virtual-clock.ts'
import {
  PAGED_TOPICS,
  storeConformance,
  withoutTransactions,
  type StoreUnderTest,
} from '../conformance/index.ts'
import { storeOn } from './memory-store.ts'
import { MemoryState } from './state.ts'

async function open(maxScan?: number): Promise<StoreUnderTest> {
  const clock = new VirtualClock()
  const random = seededRandom(1)
  const limits = { maxFinished: 100_000, ...(maxScan === undefined ? {} : { maxScan }) }
  const store = storeOn(new MemoryState({ clock, random, ...limits }))
  await store.open()
  return { store, advance: (ms) => clock.advance(ms), close: () => store.close() }
}

const runner = { describe, test, skip: (name: string) => test.skip(name) }

describe('the in-memory store', () => {
  storeConformance({ runner, open: () => open(), skip: withoutTransactions })
})

describe('the in-memory store with pages that end after three jobs', () => {
  storeConformance({ runner, open: () => open(3), topics: PAGED_TOPICS })
})
