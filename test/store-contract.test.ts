/** What a store must have, and what holdfast() says of one that lacks it. */
import { describe, expect, test } from 'vitest'
import { holdfast } from 'holdfast'
import { CONTRACT } from '../src/stores/check-store.ts'
import { memoryStore } from 'holdfast/memory'
import type { Store } from 'holdfast/store'

/** Before limits. What a new method does should fit into one that is there: see decision 0016. */
const MOST_METHODS = 26
const OPTIONAL = ['keepAlive', 'transactions.commit', 'transactions.enqueueSync']

type Parts = Record<string, unknown>

/** The names of all methods of a store, as CONTRACT has them. */
function methodsOf(store: Store): string[] {
  return Object.entries(store).flatMap(([name, part]: [string, unknown]) => {
    if (typeof part === 'function') return [name]
    if (typeof part !== 'object' || part === null) return []
    return Object.keys(part).map((method) => `${name}.${method}`)
  })
}

function without(path: string): Store {
  const [first = '', second] = path.split('.')
  const store: Parts = { ...memoryStore() }
  if (second === undefined) delete store[first]
  else {
    const facet: Parts = { ...(store[first] as Parts) }
    delete facet[second]
    store[first] = facet
  }
  return store as unknown as Store
}

function errorOf(store: unknown): unknown {
  try {
    holdfast({ store: store as Store, logger: false })
    return 'no error'
  } catch (error) {
    return error
  }
}

describe('the contract', () => {
  test(`has at most ${MOST_METHODS} methods`, () => {
    expect(new Set(CONTRACT).size).toBe(CONTRACT.length)
    expect(CONTRACT.length).toBeLessThanOrEqual(MOST_METHODS)
  })

  test('is all that the in-memory store has', () => {
    const required = CONTRACT.filter((name) => !OPTIONAL.includes(name))
    expect(methodsOf(memoryStore()).toSorted()).toEqual(required.toSorted())
  })
})

describe('a store that is passed to holdfast()', () => {
  test.each(CONTRACT.filter((name) => !OPTIONAL.includes(name)))('is refused without %s', (name) => {
    expect(errorOf(without(name))).toMatchObject({
      code: 'HF_BAD_STORE',
      message: `The store object has no ${name}().`,
      hint: expect.stringContaining('holdfast/store') as string,
    })
  })

  test.each(['upkeep', 'schedules', 'notes', 'admin'])('is refused without the facet %s', (name) => {
    expect(errorOf(without(name))).toMatchObject({ message: `The store object has no ${name}.` })
  })

  test('is told all that it lacks at once, and nothing of it is called', () => {
    const store: Parts = { ...without('upkeep.lead'), transactions: {} }
    delete store['kind']
    store['open'] = () => {
      throw new Error('nobody may open it')
    }
    expect(errorOf(store)).toMatchObject({
      message: 'The store object has no kind, upkeep.lead(), transactions.commit().',
    })
  })

  test.each([
    [42, 'The store must be a URL or an object, not a number.'],
    [memoryStore, 'The store must be a URL or an object, not a function.'],
    [Promise.resolve(memoryStore()), 'The store is a promise.'],
  ])('is refused if it is %s', (store, message) => {
    expect(errorOf(store)).toMatchObject({ code: 'HF_BAD_STORE', message })
  })

  test('may inherit its methods', () => {
    expect(errorOf(Object.create(memoryStore()))).toBe('no error')
  })
})
