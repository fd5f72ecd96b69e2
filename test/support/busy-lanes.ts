/** A queue of one worker, to follow where its claims look: see `src/stores/postgres/lanes.ts`. */
import { Lanes, type Look, type WindowLook } from '../../src/stores/postgres/lanes.ts'

export const QUEUE = 'default'
const START_MS = 1_700_000_000_000
export const HEAD_START_MS = 300_000
export const LANE = 5
/** Between two looks of a busy worker. */
export const EVERY_MS = 50

/** What a claim or a look beside it looks at. */
type Ranges = Pick<Look, 'lanes' | 'from' | 'to' | 'sweep'>
export type CostMs = (ranges: Ranges) => number

/** A queue whose worker claims a fresh job every time, so its mark is always close to the present. */
export class Busy {
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
export function besideMs(window: WindowLook, costMs: CostMs): number {
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

export function covers({ lanes, from, to }: Omit<Ranges, 'sweep'>, lane: number, rank: number): boolean {
  return lanes.some((one, at) => one === lane && from[at]! <= rank && rank < to[at]!)
}

export const ranks = (busy: Busy): number[] => [
  busy.storeMs - HEAD_START_MS - 2_000,
  busy.storeMs - HEAD_START_MS - 60_000,
  busy.storeMs - HEAD_START_MS - HOUR_MS,
  0,
  -1e14,
]

/** Up to here, an hour of ranks is full of dead rows. */
export const DEAD_UP_TO = START_MS - HEAD_START_MS
const HOUR_MS = 3_600_000

/** How much of that hour is swept. */
export function sweptShare({ lanes, from, to }: Ranges): number {
  const shares = lanes.map((lane, at) => {
    if (lane !== LANE) return 0
    return Math.min(to[at]!, DEAD_UP_TO) - Math.max(from[at]!, DEAD_UP_TO - HOUR_MS)
  })
  return Math.max(0, ...shares) / HOUR_MS
}
