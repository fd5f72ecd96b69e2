import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { seededRandom, systemRandom, type Random } from './random.ts'

const DRAWS = 100_000

describe.each<[string, () => Random]>([
  ["the system's", () => systemRandom],
  ['a seeded', () => seededRandom(42)],
])('%s randomness', (_, make) => {
  test('gives floats in [0, 1) and unsigned 32-bit integers', () => {
    const random = make()
    for (let draw = 0; draw < DRAWS; draw++) {
      const float = random.float()
      if (!(float >= 0 && float < 1)) expect.fail(`float ${float}`)
      const whole = random.uint32()
      if (!(Number.isInteger(whole) && whole >= 0 && whole < 2 ** 32)) expect.fail(`uint32 ${whole}`)
    }
  })

  test.each<[string, (random: Random) => number]>([
    ['floats', (random) => random.float()],
    ['integers', (random) => random.uint32() / 2 ** 32],
    ['the low bits of integers', (random) => (random.uint32() & 0xffff) / 2 ** 16],
  ])('spreads %s evenly', (__, draw) => {
    const random = make()
    const buckets = Array.from({ length: 20 }, () => 0)
    for (let count = 0; count < DRAWS; count++) {
      const bucket = Math.floor(draw(random) * buckets.length)
      buckets[bucket] = (buckets[bucket] as number) + 1
    }
    // The standard deviation of a bucket is about 69: 7 of them is beyond chance.
    const expected = DRAWS / buckets.length
    expect(Math.min(...buckets)).toBeGreaterThan(expected - 500)
    expect(Math.max(...buckets)).toBeLessThan(expected + 500)
  })

  test('sets every bit half of the time', () => {
    const random = make()
    const ones = Array.from({ length: 32 }, () => 0)
    for (let draw = 0; draw < 20_000; draw++) {
      const whole = random.uint32()
      for (let bit = 0; bit < 32; bit++) ones[bit] = (ones[bit] as number) + ((whole >>> bit) & 1)
    }
    expect(Math.min(...ones)).toBeGreaterThan(9_500)
    expect(Math.max(...ones)).toBeLessThan(10_500)
  })
})

describe('a seeded randomness', () => {
  const sequence = (seed: number): number[] => {
    const random = seededRandom(seed)
    return Array.from({ length: 20 }, () => random.uint32())
  }

  test('repeats itself from the same seed, and only from that', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), (a, b) => {
        expect(sequence(a)).toEqual(sequence(a))
        if (a !== b) expect(sequence(a)).not.toEqual(sequence(b))
      }),
    )
  })

  test('does not begin alike for neighbouring seeds', () => {
    const firsts = Array.from({ length: 1_000 }, (_, seed) => seededRandom(seed).float())
    const mean = firsts.reduce((sum, value) => sum + value, 0) / firsts.length
    expect(new Set(firsts).size).toBe(1_000)
    expect(mean).toBeGreaterThan(0.45)
    expect(mean).toBeLessThan(0.55)
  })

  test('draws floats and integers from one sequence', () => {
    const [a, b] = [seededRandom(5), seededRandom(5)]
    expect([a.float(), a.uint32()]).toEqual([b.uint32() / 2 ** 32, b.uint32()])
  })
})
