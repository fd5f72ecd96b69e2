/** What sweeps cost: see `sweep-pace.ts`. */
import { describe, expect, test } from 'vitest'
import {
  QUEUE,
  HEAD_START_MS,
  LANE,
  type CostMs,
  Busy,
  besideMs,
  covers,
  sweptShare,
} from '../../../test/support/busy-lanes.ts'
import type { Look, WindowLook } from './lanes.ts'

describe('sweeps take at most about a tenth of the time', () => {
  const EMPTY = { extent: 'all', taken: [] } as const
  const POLL_MS = 100
  /** Polls for a minute without finding anything; how much of it went into sweeps. */
  function pollForAMinute(
    busy: Busy,
    costMs: CostMs,
    poll: (look: Look, tookMs: number) => void,
    seen: (window: WindowLook) => void = () => undefined,
  ): number {
    let sweptMs = 0
    const endMs = busy.monotonicMs + 60_000
    while (busy.monotonicMs < endMs) {
      const window = busy.beside(costMs)
      if (window !== null) {
        sweptMs += besideMs(window, costMs)
        seen(window)
      }
      const look = busy.lanes.look(QUEUE, true, false)
      const tookMs = look.sweep ? costMs(look) : 1
      busy.monotonicMs += tookMs
      poll(look, tookMs)
      if (look.sweep) sweptMs += tookMs
      busy.monotonicMs += POLL_MS
    }
    return sweptMs
  }
  const empty =
    (busy: Busy) =>
    (look: Look, tookMs: number): void =>
      busy.lanes.answered(QUEUE, look, tookMs, EMPTY)

  test.for([20, 300, 2_000])('if the queue never gave a job, and a sweep takes %i ms', (costMs) => {
    const busy = new Busy()
    expect(pollForAMinute(busy, () => costMs, empty(busy))).toBeLessThanOrEqual(6_000 + 2 * costMs)
    // What no wake-up told of is found all the same.
    expect(busy.findsAfterMs(LANE, 0, ({ sweep }) => (sweep ? costMs : 1))).toBeLessThan(35_000)
  })

  test.for([1, 20])('if they go on beside the claims of %i workers', (workers) => {
    const busy = new Busy()
    const costMs: CostMs = (ranges) => 1 + 1_000 * sweptShare(ranges)
    for (let turn = 0; turn < 2_000; turn++) busy.turn(costMs)
    const startMs = busy.monotonicMs
    let sweptMs = 0
    while (busy.monotonicMs < startMs + 600_000) {
      const window = busy.beside(costMs, workers)
      if (window !== null) sweptMs += besideMs(window, costMs)
      busy.monotonicMs += POLL_MS
    }
    expect(sweptMs).toBeGreaterThan(600_000 / workers / 100)
    expect(sweptMs).toBeLessThanOrEqual(60_000 / workers + 100)
  })

  test('if others take every job that wake-ups tell of', () => {
    const busy = new Busy()
    busy.lanes.answered(QUEUE, busy.lanes.look(QUEUE, true, false), 1, EMPTY)
    const first = busy.storeMs
    for (let turn = 0; turn < 100; turn++) {
      busy.lanes.lower(QUEUE, LANE, busy.storeMs)
      const look = busy.lanes.look(QUEUE, true, false)
      expect(covers(look, LANE, busy.storeMs)).toBe(true)
      if (!look.sweep && turn > 0) expect(covers(look, LANE, first)).toBe(false)
      busy.lanes.answered(QUEUE, look, 1, EMPTY)
      busy.monotonicMs += 10
    }
  })

  test('if wake-ups were lost, and all that is there is locked by others', () => {
    const busy = new Busy()
    for (let turn = 0; turn < 10; turn++) busy.turn(() => 1)
    busy.lanes.sweepSoon()
    const locked = { extent: 'some', taken: [] } as const
    const sweptMs = pollForAMinute(
      busy,
      () => 300,
      (look, tookMs) => busy.lanes.answered(QUEUE, look, tookMs, locked),
    )
    expect(sweptMs).toBeLessThanOrEqual(7_000)
  })

  test('if wake-ups were lost, and the sweep takes longer than the server lets it', () => {
    const busy = new Busy()
    for (let turn = 0; turn < 10; turn++) busy.turn(() => 1)
    busy.lanes.sweepSoon()
    const rank = busy.storeMs - HEAD_START_MS - 60_000
    let found = false
    let turn = 0
    // What a claim sweeps is too much; a window is a small part of it.
    const costMs: CostMs = ({ sweep }) => (sweep && turn++ === 0 ? 3_000 : 5)
    const sweptMs = pollForAMinute(
      busy,
      costMs,
      (look, tookMs) => {
        if (look.sweep) busy.lanes.failed(QUEUE, look, tookMs)
        else busy.lanes.answered(QUEUE, look, tookMs, EMPTY)
      },
      (window) => {
        found ||= covers(window, LANE, rank)
      },
    )
    expect(sweptMs).toBeLessThanOrEqual(7_000)
    expect(found, 'the windows got there').toBe(true)
    const look = busy.lanes.look(QUEUE, true, false)
    const marks = look.from.filter((_, at) => look.lanes[at] !== 10 && look.to[at] === 1e15)
    expect(Math.min(...marks), 'no claim reads everything').toBeGreaterThan(0)
  })
})
