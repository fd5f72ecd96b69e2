import { describe, expect, test } from 'vitest'
import { History } from './history.ts'

const MINUTE_MS = 60_000

/** So many attempts and failures a round of 30 s. */
function historyOf(rounds: readonly (readonly [processed: number, failed: number])[]) {
  const history = new History(0)
  const counts = { processed: 0, failed: 0 }
  let nowMs = 0
  for (const [processed, failed] of rounds) {
    nowMs += 30_000
    counts.processed += processed
    counts.failed += failed
    history.sample(nowMs, counts)
  }
  return { history, nowMs, counts }
}

describe('the rate', () => {
  test('is that of the last minute', () => {
    const { history, nowMs, counts } = historyOf([
      [3_000, 0],
      [60, 0],
      [60, 0],
    ])
    expect(history.rate(nowMs, counts)).toBe(2)
    expect(history.rate(nowMs + 10_000, { ...counts, processed: counts.processed + 20 })).toBe(2)
  })

  test('is that since the start while it is younger, and 0 at the start itself', () => {
    const history = new History(0)
    expect(history.rate(0, { processed: 0, failed: 0 })).toBe(0)
    expect(history.rate(10_000, { processed: 50, failed: 0 })).toBe(5)
  })
})

describe('what was done recently', () => {
  test('is what was done in the last five minutes, where that is enough', () => {
    const { history, nowMs, counts } = historyOf([
      [100, 100],
      ...Array.from({ length: 10 }, () => [10, 1] as const),
    ])
    expect(history.recent(nowMs, counts)).toEqual({ processed: 100, failed: 10 })
  })

  test('reaches further back where it is not', () => {
    const { history, nowMs, counts } = historyOf([
      [100, 50],
      [4, 4],
      [8, 2],
      ...Array.from({ length: 20 }, () => [0, 0] as const),
    ])
    expect(history.recent(nowMs, counts)).toEqual({ processed: 12, failed: 6 })
  })

  test('reaches back half an hour at most', () => {
    const { history, nowMs, counts } = historyOf([
      [100, 50],
      ...Array.from({ length: 61 }, () => [0, 0] as const),
      [3, 1],
    ])
    expect(history.recent(nowMs, counts)).toEqual({ processed: 3, failed: 1 })
    expect(history.recent(nowMs + 31 * MINUTE_MS, counts)).toEqual({ processed: 0, failed: 0 })
  })
})
