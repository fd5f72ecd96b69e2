import { describe, expect, test } from 'vitest'
import { jittered, nextPause, nthPause, type Backoff } from './backoff.ts'

const BACKOFF: Backoff = { firstMs: 50, longestMs: 300 }

function pauses(count: number): number[] {
  const all: number[] = []
  for (let pauseMs = 0; all.length < count;) all.push((pauseMs = nextPause(BACKOFF, pauseMs)))
  return all
}

describe('the pauses of a backoff', () => {
  test('double up to the longest', () => {
    expect(pauses(5)).toEqual([50, 100, 200, 300, 300])
  })

  test('are the same by their number', () => {
    expect([1, 2, 3, 4, 5].map((n) => nthPause(BACKOFF, n))).toEqual(pauses(5))
  })

  test('grow by another factor if there is one', () => {
    expect([1, 2, 3].map((n) => nthPause({ firstMs: 10, longestMs: 1_000 }, n, 3))).toEqual([10, 30, 90])
  })

  test('stay finite, however many there were', () => {
    expect(nthPause(BACKOFF, 10_000)).toBe(300)
    expect(nextPause(BACKOFF, Number.MAX_VALUE)).toBe(300)
  })

  test('keep to a longest that is shorter than the first', () => {
    expect(nextPause({ firstMs: 100, longestMs: 20 }, 0)).toBe(20)
    expect(nthPause({ firstMs: 100, longestMs: 20 }, 1)).toBe(20)
  })
})

describe('jitter', () => {
  test.each<[chance: number, share: number | undefined, ms: number]>([
    [0, undefined, 1_000],
    [1, undefined, 500],
    [0.5, undefined, 750],
    [1, 0, 1_000],
    [1, 0.2, 800],
    [1, 1, 0],
  ])('of chance %d and share %s leaves %d of 1000 ms', (chance, share, ms) => {
    expect(jittered(1_000, chance, share)).toBe(ms)
  })
})
