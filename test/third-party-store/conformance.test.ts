import { storeConformance, withoutTransactions } from 'holdfast/store/conformance'
import { describe, test } from 'vitest'
import { tinyStore } from './tiny-store.ts'

storeConformance({
  runner: { describe, test, skip: (name) => test.skip(name) },
  async open() {
    let now = Date.now()
    const store = tinyStore({ now: () => now })
    await store.open()
    return {
      store,
      advance: async (ms) => void (now += ms),
      close: () => store.close(),
    }
  },
  skip: withoutTransactions,
})
