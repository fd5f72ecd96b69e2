/** Where claims look. A job that no wake-up told of must be within some look soon, whatever the looks cost. */
import { describe, expect, test } from 'vitest'
import { Lanes, type Look, type WindowLook } from './lanes.ts'

const QUEUE = 'default'
const START_MS = 1_700_000_000_000
const HEAD_START_MS = 300_000
const LANE = 5
/** Between two looks of a busy worker. */
const EVERY_MS = 50

/** What a claim or a look beside it looks at. */
type Ranges = Pick<Look, 'lanes' | 'from' | 'to' | 'sweep'>
type CostMs = (ranges: Ranges) => number

/** A queue whose worker claims a fresh job every time, so its mark is always close to the present. */
class Busy {
  monotonicMs = 0
  readonly lanes = new Lanes({ monotonicMs: () => this.monotonicMs })

  get storeMs(): number {
    return START_MS + this.monotonicMs
  }

  /** A claim, and the look beside it. */
  turn(costMs: CostMs): Ranges {
    const window = this.beside(costMs)
    const look = this.lanes.look(QUEUE, true, false)
    const tookMs = costMs(look)
    this.monotonicMs += tookMs
    this.take(look, HEAD_START_MS, tookMs)
    this.lanes.sawTime(this.storeMs)
    this.monotonicMs += EVERY_MS
    return window === null ? look : both(look, window)
  }

  /** It finds nothing. */
  beside(costMs: CostMs, workers = 1): WindowLook | null {
    const window = this.lanes.nextWindow(QUEUE)
    if (window === null) return null
    const ranks = window.lanes.map(() => null)
    this.lanes.swept(QUEUE, window, { ranks, tookMs: besideMs(window, costMs), workers })
    return window
  }

  /** A fresh job, and there are more. */
  take(look: Look, headStartMs: number, tookMs = 1): void {
    const taken = [{ lane: LANE, rank: this.storeMs - headStartMs, headStartMs }]
    this.lanes.answered(QUEUE, look, tookMs, { extent: 'some', taken })
  }

  /** How long it takes until a look includes the rank. */
  findsAfterMs(lane: number, rank: number, costMs: CostMs): number {
    const startMs = this.monotonicMs
    while (this.monotonicMs - startMs < HOUR_MS)
      if (covers(this.turn(costMs), lane, rank)) return this.monotonicMs - startMs
    return Infinity
  }
}

/** By the server's clock: without the way there. */
function besideMs(window: WindowLook, costMs: CostMs): number {
  return costMs({ ...window, sweep: true }) - costMs({ lanes: [], from: [], to: [], sweep: false })
}

function both(look: Look, { lanes, from, to }: WindowLook): Ranges {
  return {
    lanes: [...look.lanes, ...lanes],
    from: [...look.from, ...from],
    to: [...look.to, ...to],
    sweep: true,
  }
}

function covers({ lanes, from, to }: Omit<Ranges, 'sweep'>, lane: number, rank: number): boolean {
  return lanes.some((one, at) => one === lane && from[at]! <= rank && rank < to[at]!)
}

const ranks = (busy: Busy): number[] => [
  busy.storeMs - HEAD_START_MS - 2_000,
  busy.storeMs - HEAD_START_MS - 60_000,
  busy.storeMs - HEAD_START_MS - HOUR_MS,
  0,
  -1e14,
]

/** Up to here, an hour of ranks is full of dead rows. */
const DEAD_UP_TO = START_MS - HEAD_START_MS
const HOUR_MS = 3_600_000

/** How much of that hour is swept. */
function sweptShare({ lanes, from, to }: Ranges): number {
  const shares = lanes.map((lane, at) => {
    if (lane !== LANE) return 0
    return Math.min(to[at]!, DEAD_UP_TO) - Math.max(from[at]!, DEAD_UP_TO - HOUR_MS)
  })
  return Math.max(0, ...shares) / HOUR_MS
}

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
