import { AssertionError } from 'node:assert/strict'
import { describe, expect, test } from 'vitest'
import { seededRandom } from '../../src/std/random.ts'
import { VirtualClock } from '../../src/std/virtual-clock.ts'
import type { StoreUnderTest } from '../../src/stores/conformance/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import type { Store } from '../../src/stores/store.ts'
import { PLANTED_BUGS } from './planted-bugs.ts'
import { runModelTest } from './run.ts'

const SEED = 20_300_101

async function open(plant: (store: Store) => Store = (store) => store): Promise<StoreUnderTest> {
  const clock = new VirtualClock()
  const store = memoryStore({ clock, random: seededRandom(1) })
  await store.open()
  return { store: plant(store), advance: (ms) => clock.advance(ms), close: () => store.close() }
}

describe('the in-memory store', () => {
  test('does what the model does, with a fixed seed', { timeout: 30_000 }, async () => {
    await runModelTest(() => open(), { numRuns: 150, seed: SEED })
  })

  test('does what the model does, with a fresh seed', { timeout: 30_000 }, async () => {
    await runModelTest(() => open(), { numRuns: 150 })
  })
})

describe('the model catches a store that', () => {
  test.each(Object.entries(PLANTED_BUGS))('%s', { timeout: 30_000 }, async (_bug, plant) => {
    const failure = await runModelTest(() => open(plant), { numRuns: 300, seed: SEED, shrink: false }).then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(failure).toBeInstanceOf(Error)
    expect((failure as Error).message).toContain(`{ seed: ${SEED} }`)
    // Caught by a comparison, and not because the bug broke the test.
    expect((failure as Error).cause).toBeInstanceOf(AssertionError)
  })
})
