import { describe, test } from 'vitest'
import { seededRandom } from '../../std/random.ts'
import { VirtualClock } from '../../std/virtual-clock.ts'
import { storeConformance } from '../conformance/index.ts'
import { memoryStore } from './index.ts'

describe('the in-memory store', () => {
  storeConformance({
    runner: { describe, test, skip: (name) => test.skip(name) },
    open: async () => {
      const clock = new VirtualClock()
      const store = memoryStore({ clock, random: seededRandom(1) })
      await store.open()
      return { store, advance: (ms) => clock.advance(ms), close: () => store.close() }
    },
  })
})
