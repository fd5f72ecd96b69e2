import { describe, expect, test } from 'vitest'
import { memoryStore } from '../memory/index.ts'
import { storeConformance, type ConformanceOptions } from './index.ts'

interface Recorded {
  readonly topics: string[]
  readonly tests: Map<string, () => Promise<void>>
  readonly skipped: string[]
}

const open: ConformanceOptions['open'] = async () => {
  const store = memoryStore()
  return { store, advance: async () => undefined, close: () => store.close() }
}

/** Runs the suite with a runner that only writes down what it is given. */
function record(options: Partial<ConformanceOptions> = {}): Recorded {
  const recorded: Recorded = { topics: [], tests: new Map(), skipped: [] }
  storeConformance({
    open,
    runner: {
      describe: (name, body) => {
        recorded.topics.push(name)
        body()
      },
      test: (name, body) => {
        expect(recorded.tests.has(name), `two tests are called "${name}"`).toBe(false)
        recorded.tests.set(name, body)
      },
      skip: (name) => recorded.skipped.push(name),
    },
    ...options,
  })
  return recorded
}

describe('the conformance suite', () => {
  test('has a title of its own for each test, and tests in each topic', () => {
    const { topics, tests } = record()
    expect(new Set(topics).size).toBe(topics.length)
    expect(tests.size).toBeGreaterThan(250)
  })

  test('skips by title and shows the reason', () => {
    const title = 'a higher priority goes first'
    const { tests, skipped } = record({ skip: { [title]: 'this store has no priorities' } })
    expect(tests.has(title)).toBe(false)
    expect(skipped).toEqual([`${title} (skipped: this store has no priorities)`])
  })

  test('refuses to skip a test that it does not have', () => {
    expect(() => record({ skip: { 'a test that was renamed': 'why' } })).toThrow('a test that was renamed')
  })

  test('runs the topics that are named, and refuses one that it does not have', () => {
    expect(record({ topics: ['listing'] }).topics).toEqual(['listing'])
    expect(() => record({ topics: ['listings'] })).toThrow('listings')
  })

  test('closes the store also after a test that failed', async () => {
    let closed = 0
    const { tests } = record({
      open: async () => {
        const under = await open()
        return {
          ...under,
          store: { ...under.store, enqueue: () => Promise.reject(new Error('no disk')) },
          close: async () => void closed++,
        }
      },
    })
    await expect(tests.get('an empty flush is answered with nothing')?.()).rejects.toThrow('no disk')
    expect(closed).toBe(1)
  })
})
