import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isUuid, uuidV7Generator } from './ids.ts'
import { seededRandom } from './random.ts'
import { VirtualClock } from './virtual-clock.ts'

const V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** A clock that may be set to any time. */
function settableClock(ms: number): { ms: number; now(): number } {
  return { ms, now() { return this.ms } } // prettier-ignore
}

function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

function expectStrictlyIncreasing(ids: readonly string[]): void {
  const atFault = ids.findIndex((id, index) => index > 0 && id <= (ids[index - 1] as string))
  expect(atFault === -1 ? 'increasing' : `${ids[atFault - 1]} ≥ ${ids[atFault]}`).toBe('increasing')
}

describe('a generator of UUIDv7', () => {
  test('has the format, the version and the variant of RFC 9562', () => {
    const next = uuidV7Generator(new VirtualClock(), seededRandom(1))
    expect(Array.from({ length: 10_000 }, next).filter((id) => !V7.test(id))).toEqual([])
  })

  test.each([0, 1, 1_645_557_742_000, Date.UTC(2030, 0, 1), 2 ** 48 - 1])('begins with the time %d', (ms) => {
    const id = uuidV7Generator(settableClock(ms), seededRandom(1))()
    expect(id).toMatch(V7)
    expect(timeOf(id)).toBe(ms)
  })

  test('matches the example of the RFC in its time', () => {
    const id = uuidV7Generator(settableClock(Date.parse('2022-02-22T14:22:22-05:00')), seededRandom(1))()
    expect(id.slice(0, 15)).toBe('017f22e2-79b0-7')
  })

  test('is well-formed also where a virtual clock stands between two milliseconds', () => {
    const clock = settableClock(1_000.75)
    const next = uuidV7Generator(clock, seededRandom(1))
    const ids = [next(), next()]
    clock.ms = 1_001.25
    ids.push(next())
    for (const id of ids) expect(id).toMatch(V7)
    expect(ids.map(timeOf)).toEqual([1_000, 1_000, 1_001])
    expectStrictlyIncreasing(ids)
  })

  test('increases strictly while the clock stands still, for far more than 4,096 ids', () => {
    const next = uuidV7Generator(settableClock(5_000), seededRandom(2))
    const ids = Array.from({ length: 20_000 }, next)
    expectStrictlyIncreasing(ids)
    expect(ids.filter((id) => !V7.test(id))).toEqual([])
    // It borrows from the next milliseconds, and not more than it needs.
    expect(timeOf(ids.at(-1) as string)).toBeLessThanOrEqual(5_000 + Math.ceil(20_000 / 4_096))
  })

  test('increases strictly when the clock goes back, and returns to it once it has caught up', () => {
    const clock = settableClock(10_000)
    const next = uuidV7Generator(clock, seededRandom(3))
    const ids = [next()]
    for (const ms of [9_999, 0, 9_000, 10_000, 10_001]) {
      clock.ms = ms
      ids.push(next(), next())
    }
    expectStrictlyIncreasing(ids)
    expect(timeOf(ids.at(-1) as string)).toBe(10_001)
  })

  test('increases strictly whatever the clock does', () => {
    const times = fc.array(fc.tuple(fc.nat(20), fc.integer({ min: 1, max: 3_000 })), { maxLength: 8 })
    fc.assert(
      fc.property(times, fc.integer(), (steps, seed) => {
        const clock = settableClock(0)
        const next = uuidV7Generator(clock, seededRandom(seed))
        const ids = steps.flatMap(([ms, count]) => {
          clock.ms = ms
          return Array.from({ length: count }, next)
        })
        expectStrictlyIncreasing(ids)
      }),
      { numRuns: 50 },
    )
  })

  test('gives different ids to two generators in the same millisecond', () => {
    const clock = settableClock(7_000)
    const [a, b] = [uuidV7Generator(clock, seededRandom(1)), uuidV7Generator(clock, seededRandom(2))]
    const ids = new Set(Array.from({ length: 1_000 }, () => [a(), b()]).flat())
    expect(ids.size).toBe(2_000)
  })

  test('can be repeated from a seed', () => {
    const make = (): string[] =>
      Array.from({ length: 50 }, uuidV7Generator(new VirtualClock(), seededRandom(9)))
    expect(make()).toEqual(make())
  })
})

describe('isUuid', () => {
  test.each([
    ['017f22e2-79b0-7cc3-98c4-dc0c0c07398f', true],
    ['017F22E2-79B0-7CC3-98C4-DC0C0C07398F', true],
    ['017f22e279b07cc398c4dc0c0c07398f', false],
    ['017f22e2-79b0-7cc3-98c4-dc0c0c07398', false],
    ['017f22e2-79b0-7cc3-98c4-dc0c0c07398f0', false],
    ['017f22e2-79b0-7cc3-98c4-dc0c0c07398g', false],
    [' 017f22e2-79b0-7cc3-98c4-dc0c0c07398f', false],
    ['017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n', false],
    ['', false],
  ])('of %j is %s', (text, expected) => {
    expect(isUuid(text)).toBe(expected)
  })
})
