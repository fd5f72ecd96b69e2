/** Where claims look. A job that no wake-up told of must be within some look soon, whatever the looks cost. */
import { describe, expect, test } from 'vitest'
import {
  QUEUE,
  HEAD_START_MS,
  LANE,
  EVERY_MS,
  type CostMs,
  Busy,
  besideMs,
  covers,
  ranks,
  DEAD_UP_TO,
  sweptShare,
} from '../../../test/support/busy-lanes.ts'
import type { Look, WindowLook } from './lanes.ts'

const COSTS: readonly (readonly [name: string, costMs: CostMs, withinMs: number])[] = [
  ['a fast server', () => 1, 5_000],
  ['a server that is far away', () => 40, 5_000],
  ['a slow server', () => 200, 30_000],
  ['sweeps that read many dead rows', ({ sweep }) => (sweep ? 60 : 1), 30_000],
  ['an hour of dead rows, a second to read', (look) => 1 + 1_000 * sweptShare(look), 30_000],
]

describe('a job below the mark that no wake-up told of', () => {
  test.for(COSTS)('is found soon: %s', ([, costMs, withinMs]) => {
    const busy = new Busy()
    for (let turn = 0; turn < 2_000; turn++) busy.turn(costMs)
    for (const rank of ranks(busy))
      expect(busy.findsAfterMs(LANE, rank, costMs), `rank ${rank}`).toBeLessThan(withinMs)
    expect(busy.findsAfterMs(3, ranks(busy)[0]!, costMs), 'in a lane of which nothing is known').toBeLessThan(
      withinMs,
    )
  })

  test('is found soon although the head start of the lane changes all the time', () => {
    const busy = new Busy()
    const costMs: CostMs = ({ sweep }) => (sweep ? 60 : 1)
    for (let turn = 0; turn < 2_000; turn++) busy.turn(costMs)
    for (const rank of ranks(busy)) {
      const startMs = busy.monotonicMs
      for (let turn = 0; !covers(busy.turn(costMs), LANE, rank); turn++) {
        const headStartMs = turn % 2 === 0 ? 0 : HEAD_START_MS
        const window = busy.beside(costMs)
        if (window !== null && covers(window, LANE, rank)) break
        const look = busy.lanes.look(QUEUE, true, false)
        busy.take(look, headStartMs, costMs(look))
        if (covers(look, LANE, rank)) break
        expect(busy.monotonicMs - startMs, `rank ${rank}`).toBeLessThan(60_000)
      }
    }
  })

  test('is in the first look after wake-ups may have been lost', () => {
    const busy = new Busy()
    const costMs: CostMs = ({ sweep }) => (sweep ? 60 : 1)
    for (let turn = 0; turn < 2_000; turn++) busy.turn(costMs)
    busy.lanes.sweepSoon()
    const look = busy.lanes.look(QUEUE, true, false)
    for (const rank of ranks(busy)) expect(covers(look, LANE, rank), `rank ${rank}`).toBe(true)
  })
})

describe('a wake-up', () => {
  /** Without what a sweep may happen to add. */
  const mark = ({ lanes, from }: Look): number =>
    Math.max(...from.filter((_, place) => lanes[place] === LANE))

  test('that overtakes the answer of a claim is not forgotten', () => {
    const busy = new Busy()
    for (let turn = 0; turn < 10; turn++) busy.turn(() => 1)
    const rank = busy.storeMs - HEAD_START_MS - 60_000
    const look = busy.lanes.look(QUEUE, true, false)
    busy.lanes.lower(QUEUE, LANE, rank)
    busy.take(look, HEAD_START_MS)
    const next = busy.lanes.look(QUEUE, true, false)
    expect(mark(next), 'after an answer with jobs').toBe(rank)
    busy.lanes.answered(QUEUE, look, 1, { extent: 'all', taken: [] })
    const last = busy.lanes.look(QUEUE, true, false)
    expect(mark(last), 'after an empty answer').toBe(rank)
    busy.lanes.answered(QUEUE, last, 1, { extent: 'all', taken: [] })
    expect(mark(busy.lanes.look(QUEUE, true, false)), 'once it was looked for').toBeGreaterThan(rank)
  })

  test('during every claim does not hold the mark back', () => {
    const busy = new Busy()
    for (let turn = 0; turn < 10; turn++) busy.turn(() => 1)
    let underWay = busy.lanes.look(QUEUE, true, false)
    for (let turn = 0; turn < 100; turn++) {
      busy.lanes.lower(QUEUE, LANE, busy.storeMs - HEAD_START_MS)
      // Two claims are always under way.
      const next = busy.lanes.look(QUEUE, true, false)
      busy.lanes.lower(QUEUE, LANE, busy.storeMs - HEAD_START_MS)
      busy.take(underWay, HEAD_START_MS)
      underWay = next
      busy.monotonicMs += EVERY_MS
    }
    expect(mark(underWay)).toBeGreaterThan(busy.storeMs - HEAD_START_MS - 5 * EVERY_MS)
  })

  test('is not forgotten among many that no claim answers', () => {
    const busy = new Busy()
    for (let turn = 0; turn < 10; turn++) busy.turn(() => 1)
    const rank = busy.storeMs - HEAD_START_MS - 60_000
    for (let turn = 0; turn < 1_000; turn++) {
      busy.lanes.lower(QUEUE, LANE, rank + turn)
      // Answered with jobs of other lanes alone.
      busy.lanes.answered(QUEUE, busy.lanes.look(QUEUE, true, false), 1, { extent: 'some', taken: [] })
    }
    const look = busy.lanes.look(QUEUE, true, false)
    expect(covers(look, LANE, rank)).toBe(true)
    busy.take(look, HEAD_START_MS)
    expect(mark(busy.lanes.look(QUEUE, true, false))).toBeGreaterThan(rank + 1_000)
  })

  test('that a later claim answered is not lost to an answer that was overtaken', () => {
    const busy = new Busy()
    for (let turn = 0; turn < 10; turn++) busy.turn(() => 1)
    const rank = busy.storeMs - HEAD_START_MS - 60_000
    const slow = busy.lanes.look(QUEUE, true, false)
    busy.lanes.lower(QUEUE, LANE, rank)
    const quick = busy.lanes.look(QUEUE, true, false)
    // It was filled with what came in at that rank, and more is left there.
    const taken = [{ lane: LANE, rank, headStartMs: HEAD_START_MS }]
    busy.lanes.answered(QUEUE, quick, 1, { extent: 'some', taken })
    busy.take(slow, HEAD_START_MS)
    expect(covers(busy.lanes.look(QUEUE, true, false), LANE, rank + 1)).toBe(true)
  })
})

describe('what an answer has not seen is looked at by the next look', () => {
  const LOWER = 3
  const LOWER_HEAD_START_MS = 180_000
  const all = (busy: Busy, look: Look): void =>
    busy.lanes.answered(QUEUE, look, 1, { extent: 'all', taken: [] })

  /** Two lanes, whose marks stand a second before now, and a job in the second one that ranks far below its mark. */
  function twoLanes(): { busy: Busy; rank: number } {
    const busy = new Busy()
    for (let turn = 0; turn < 10; turn++) busy.turn(() => 1)
    const rank = busy.storeMs - LOWER_HEAD_START_MS
    const taken = [{ lane: LOWER, rank, headStartMs: LOWER_HEAD_START_MS }]
    busy.lanes.answered(QUEUE, busy.lanes.look(QUEUE, true, false), 1, { extent: 'some', taken })
    busy.monotonicMs += 60_000
    return { busy, rank }
  }

  test('if the queue was paused', () => {
    const { busy, rank } = twoLanes()
    const look = busy.lanes.look(QUEUE, true, true)
    busy.lanes.answered(QUEUE, look, 1, { extent: 'closed', taken: [] })
    expect(covers(busy.lanes.look(QUEUE, true, false), LOWER, rank + 1)).toBe(true)
  })

  test('if wake-ups may have been lost, and the sweep was paused', () => {
    const { busy, rank } = twoLanes()
    all(busy, busy.lanes.look(QUEUE, true, true))
    busy.lanes.sweepSoon()
    const look = busy.lanes.look(QUEUE, true, false)
    busy.lanes.answered(QUEUE, look, 1, { extent: 'closed', taken: [] })
    expect(covers(busy.lanes.look(QUEUE, true, false), LOWER, rank + 1)).toBe(true)
  })

  test('if a sweep was filled before it got there', () => {
    const { busy, rank } = twoLanes()
    all(busy, busy.lanes.look(QUEUE, true, true))
    const sweep = busy.lanes.look(QUEUE, true, true)
    const taken = [{ lane: LANE, rank: rank - 5_000, headStartMs: HEAD_START_MS }]
    busy.lanes.answered(QUEUE, sweep, 1, { extent: 'some', taken })
    expect(covers(busy.lanes.look(QUEUE, true, false), LOWER, rank)).toBe(true)
  })

  test('if its call failed while another one moved the mark', () => {
    const { busy, rank } = twoLanes()
    const failed = busy.lanes.look(QUEUE, true, false)
    all(busy, busy.lanes.look(QUEUE, true, false))
    expect(covers(busy.lanes.look(QUEUE, true, false), LOWER, rank + 1), 'the mark has moved').toBe(false)
    busy.lanes.failed(QUEUE, failed, 1)
    expect(covers(busy.lanes.look(QUEUE, true, false), LOWER, rank + 1)).toBe(true)
  })

  test('and nothing more once all was taken', () => {
    const { busy, rank } = twoLanes()
    all(busy, busy.lanes.look(QUEUE, true, true))
    expect(covers(busy.lanes.look(QUEUE, true, false), LOWER, rank + 1)).toBe(false)
  })
})

describe('a job that a look beside the claims found', () => {
  test('is in the next claim, and so is what ranks behind it', () => {
    const busy = new Busy()
    const costMs: CostMs = (ranges) => 1 + 1_000 * sweptShare(ranges)
    let window: WindowLook | null = null
    while (window === null || !covers(window, LANE, DEAD_UP_TO - 1_000)) {
      busy.turn(costMs)
      window = busy.lanes.nextWindow(QUEUE)
      if (window !== null)
        busy.lanes.swept(QUEUE, window, {
          ranks: window.lanes.map((lane, at) =>
            covers(
              { lanes: [lane], from: [window!.from[at]!], to: [window!.to[at]!] },
              LANE,
              DEAD_UP_TO - 1_000,
            )
              ? DEAD_UP_TO - 1_000
              : null,
          ),
          tookMs: besideMs(window, costMs),
          workers: 1,
        })
    }
    const next = busy.lanes.look(QUEUE, true, false)
    expect(next.sweep, 'claims do not sweep').toBe(false)
    expect(covers(next, LANE, DEAD_UP_TO - 1_000)).toBe(true)
  })
})
