import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  DEFAULT_AGING_MS,
  headStartMs,
  PRIORITY_LEVELS,
  rankOf,
  readAgingMs,
  readPriority,
  type Aging,
} from './rank.ts'

const MINUTE_MS = 60_000
const NOON = Date.UTC(2030, 0, 1, 12)

function rank(priority: unknown, dueMs: number, aging?: Aging): number {
  return rankOf(
    dueMs,
    headStartMs(
      readPriority(priority, 'priority'),
      aging === undefined ? DEFAULT_AGING_MS : readAgingMs(aging, 'aging'),
    ),
  )
}

const badOption = (message: RegExp): unknown =>
  expect.objectContaining({ code: 'HF_BAD_OPTION', message: expect.stringMatching(message) })

describe('a priority', () => {
  test.each([
    ['urgent', 9],
    ['high', 7],
    ['normal', 5],
    ['low', 3],
    ['background', 1],
    ...Array.from({ length: 10 }, (_, level) => [level, level] as const),
  ] as const)('%s is level %d', (priority, level) => {
    expect(readPriority(priority, 'priority')).toBe(level)
  })

  test.each<[unknown]>([
    [-1],
    [10],
    [4.5],
    [Number.NaN],
    [Infinity],
    ['5'],
    ['Urgent'],
    ['toString'],
    ['__proto__'],
    [''],
    [null],
    [undefined],
    [5n],
    [[5]],
    [Object.create(null)],
  ])('cannot be %o', (priority) => {
    const read = (): number => readPriority(priority, 'priority')
    expect(read).toThrow(
      badOption(
        /^`priority` is .+; it must be urgent, high, normal, low, background, or a whole number from 0 to 9\.$/,
      ),
    )
    const hint = 'Use urgent, high, normal, low, background, or a whole number from 0 to 9.'
    expect(read).toThrow(expect.objectContaining({ hint }))
  })
})

describe("a job's rank", () => {
  test('is its due time less the head start of its priority', () => {
    expect(rank('normal', NOON)).toBe(NOON - 5 * MINUTE_MS)
    expect(rank(0, NOON)).toBe(NOON)
  })

  test.each(Object.entries(PRIORITY_LEVELS))('of %s is one minute a level', (name, level) => {
    expect(DEFAULT_AGING_MS).toBe(MINUTE_MS)
    expect(rank(name, NOON)).toBe(rank(level, NOON))
    expect(rank(0, NOON) - rank(name, NOON)).toBe(level * MINUTE_MS)
  })

  test('puts an urgent job before a background one that is less than eight minutes older', () => {
    expect(rank('urgent', NOON)).toBeLessThan(rank('background', NOON - 8 * MINUTE_MS + 1))
  })

  test('puts a background job before a new urgent one once it is more than eight minutes older', () => {
    expect(rank('background', NOON - 8 * MINUTE_MS - 1)).toBeLessThan(rank('urgent', NOON))
    expect(rank('background', NOON - 8 * MINUTE_MS)).toBe(rank('urgent', NOON))
  })

  test.each<[Aging, number]>([
    ['1m', 8 * MINUTE_MS],
    ['10s', 80_000],
    [500, 4_000],
    ['strict', 8 * 10 * 365 * 86_400_000],
  ])('with an aging of %s lets background overtake urgent after %d ms', (aging, overtakesMs) => {
    expect(rank('background', NOON - overtakesMs - 1, aging)).toBeLessThan(rank('urgent', NOON, aging))
    expect(rank('background', NOON - overtakesMs + 1, aging)).toBeGreaterThan(rank('urgent', NOON, aging))
  })

  test('is strict where it is told to: years of waiting do not make up for one level', () => {
    expect(rank(5, NOON, 'strict')).toBeLessThan(rank(4, NOON - 9 * 365 * 86_400_000, 'strict'))
    expect(Number.isSafeInteger(rank(9, 0, 'strict'))).toBe(true)
  })

  test('orders by age within a priority, and by priority within an age', () => {
    const level = fc.integer({ min: 0, max: 9 })
    const time = fc.integer({ min: 0, max: 4e12 })
    fc.assert(
      fc.property(
        level,
        level,
        time,
        time,
        fc.constantFrom<Aging>('1ms', '1m', '1h', 'strict'),
        (p, q, s, t, aging) => {
          expect(Math.sign(rank(p, s, aging) - rank(p, t, aging))).toBe(Math.sign(s - t))
          expect(Math.sign(rank(p, t, aging) - rank(q, t, aging))).toBe(Math.sign(q - p))
        },
      ),
    )
  })

  test('orders jobs totally, together with their ids: in whatever order they come, they leave in one', () => {
    const job = fc.record({
      id: fc.nat(9_999),
      rank: fc
        .tuple(fc.integer({ min: 0, max: 9 }), fc.nat(20))
        .map(([level, due]) => rank(level, due * MINUTE_MS)),
    })
    const jobs = fc.uniqueArray(job, { selector: ({ id }) => id, maxLength: 40 })
    const byRank = (a: { id: number; rank: number }, b: { id: number; rank: number }): number =>
      a.rank - b.rank || a.id - b.id
    fc.assert(
      fc.property(
        jobs.chain((list) =>
          fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
        ),
        ([list, shuffled]) => {
          expect(shuffled.toSorted(byRank)).toEqual(list.toSorted(byRank))
        },
      ),
    )
  })
})

describe('an aging', () => {
  test('is at most what nine levels can be stored of, and no longer', () => {
    expect(headStartMs(9, readAgingMs(1e14, 'aging'))).toBe(9e14)
    expect(() => readAgingMs(4.32e15 / 2, 'aging')).toThrow('at most 1e14 ms')
  })

  test.each<[unknown]>([[0], [-1], ['0s'], ['5 minutes'], ['STRICT'], [Number.NaN], [null]])(
    'cannot be %o',
    (aging) => {
      const read = (): number => readAgingMs(aging, 'queues.mail.aging')
      expect(read).toThrow(badOption(/queues\.mail\.aging/))
    },
  )
})
