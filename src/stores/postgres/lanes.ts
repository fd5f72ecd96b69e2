/**
 * Where claims start reading. Each lane of a queue (a priority, or the crash suspects) is searched from the rank of its
 * last claim on, the mark: rows that were deleted below it stay in the index for as long as an old transaction might
 * see them, and reading past them costs more with every job. Wake-ups announce every job that arrives below the mark,
 * and lower it. As a backstop, jobs below the marks are swept regularly: along with a claim while that costs next to
 * nothing, otherwise by separate scans (see sweep-pace.ts).
 */
import type { Clock } from '../../std/clock.ts'
import { EVERYTHING, HIGHEST, LOWEST, SweepPace, type Span, type Window } from './sweep-pace.ts'

export interface Look {
  /** A lane may be listed twice: from its mark on, and what is swept below it. */
  readonly lanes: readonly number[]
  readonly from: readonly number[]
  /** Exclusive. */
  readonly to: readonly number[]
  /** Whether it looks at everything below the marks as well. */
  readonly sweep: boolean
  /** Counts the looks: tells what a wake-up came after. */
  readonly number: number
}

/** A separate scan for jobs below the marks. */
export interface WindowLook extends Pick<Look, 'lanes' | 'from' | 'to'> {
  readonly window: Window
}

/** What such a scan found. */
export interface Overlooked {
  /** The lowest rank of each range of the look; null if no job is there. */
  readonly ranks: readonly (number | null)[]
  /** Time that the server took. */
  readonly tookMs: number
  /** How many workers are registered with the store. */
  readonly workers: number
}

/** What a claim answered to a look. */
export interface Found {
  /**
   * `all`: it took everything that it could lock there. `some`: more may be left. `closed`: it did not look, because
   * the queue is paused or the worker is gone.
   */
  readonly extent: 'all' | 'some' | 'closed'
  /** The last job that it took from each lane, in order of rank; without suspects. */
  readonly taken: readonly { readonly lane: number; readonly rank: number; readonly headStartMs: number }[]
}

export const SUSPECTS_LANE = 10
const ALL_LANES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] as const
/**
 * Once all is taken, the mark moves up to now minus this: a job that is enqueued now ranks higher, unless its
 * transaction takes longer, and then its wake-up announces it.
 */
const IN_FLIGHT_MS = 1_000
/** No more answers than this are awaited at once. */
const MOST_HINTS = 32

interface Lane {
  mark: number
  /** Of the newest job that was claimed; undefined before the first: then a wake-up announced the lane. */
  headStartMs: number | undefined
  /** Jobs announced by wake-ups that no answer has covered yet, in order of look; ranks grow. */
  hints: Hint[]
  /** The newest look whose answer moved the mark. */
  movedBy: number
  /** Up to here the windows of this round have swept. */
  sweptTo: number
}

/** A job arrived at this rank when `look` was the newest one: answers of that look and of older ones don't know it. */
interface Hint {
  readonly rank: number
  readonly look: number
}

interface QueueLanes {
  readonly lanes: Map<number, Lane>
  readonly pace: SweepPace
}

export class Lanes {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #queues = new Map<string, QueueLanes>()
  #looks = 0
  /** The store's time minus the monotonic clock, as of the newest claim. */
  #storeAheadMs: number | undefined

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  look(queue: string, suspects: boolean, mustSweep: boolean): Look {
    const { lanes, pace } = this.#of(queue)
    const sweep = mustSweep || pace.inClaim(this.#clock.monotonicMs())
    const ranges: Range[] = []
    for (const [lane, { mark }] of lanes) ranges.push([lane, mark, HIGHEST])
    if (sweep) ranges.push(...rangesOf(lanes, EVERYTHING))
    // There are never many suspects, so they are searched for from the lowest rank.
    if (suspects) ranges.push([SUSPECTS_LANE, LOWEST, HIGHEST])
    return { ...columns(ranges), sweep, number: ++this.#looks }
  }

  /** The next separate scan, if one is due. Each must be answered or have failed. */
  nextWindow(queue: string): WindowLook | null {
    const { lanes, pace } = this.#of(queue)
    const window = pace.nextWindow(spanOf(lanes), this.#clock.monotonicMs())
    return window === null ? null : { ...columns([...rangesOf(lanes, window)]), window }
  }

  /** The next claim includes the jobs found there. */
  swept(queue: string, { lanes: names, to, window }: WindowLook, { ranks, ...cost }: Overlooked): void {
    const { lanes, pace } = this.#of(queue)
    for (const [at, name] of names.entries()) {
      const lane = lanes.get(name)
      const end = to[at] ?? LOWEST
      if (lane !== undefined) lane.sweptTo = window.start === LOWEST ? end : Math.max(lane.sweptTo, end)
      const rank = ranks[at] ?? null
      if (rank !== null) this.lower(queue, name, rank)
    }
    pace.swept(spanOf(lanes), window, { ...cost, nowMs: this.#clock.monotonicMs() })
  }

  /** `isLasting`: another try soon will fail as well. */
  windowFailed(queue: string, tookMs: number, isLasting: boolean): void {
    this.#of(queue).pace.windowFailed(tookMs, this.#clock.monotonicMs(), isLasting)
  }

  /** An answer that has just arrived carries this time of the store. */
  sawTime(storeMs: number): void {
    this.#storeAheadMs = storeMs - this.#clock.monotonicMs()
  }

  answered(queue: string, look: Look, tookMs: number, { extent, taken }: Found): void {
    const { lanes, pace } = this.#of(queue)
    if (extent === 'closed') return
    const span = spanOf(lanes)
    for (const { lane, rank, headStartMs } of taken) {
      const mine = lanes.get(lane)
      if (mine === undefined) {
        lanes.set(lane, { mark: rank, headStartMs, hints: [], movedBy: look.number, sweptTo: LOWEST })
        continue
      }
      mine.headStartMs = headStartMs
      // The last rank that was taken, also if it is lower than before: ranks come back.
      moveMark(mine, rank, look)
    }
    const last = taken.at(-1)
    if (extent === 'all') this.#moveUp(lanes, look)
    else if (last !== undefined) lowerTo(lanes, look, last.rank)
    const sure = extent === 'all' || last !== undefined
    pace.claimed(span, look, { tookMs, nowMs: this.#clock.monotonicMs(), sure })
  }

  /**
   * The call failed. If it had taken something, that is back, and the answers of other looks may have moved the marks
   * past it.
   */
  failed(queue: string, look: Look, tookMs: number): void {
    const { lanes, pace } = this.#of(queue)
    for (const [at, lane] of look.lanes.entries()) {
      const from = look.from[at] ?? LOWEST
      // Lanes without a mark are left to the sweeps.
      if (look.to[at] === HIGHEST && from > LOWEST) this.lower(queue, lane, from)
    }
    if (look.sweep) pace.claimFailed(spanOf(lanes), tookMs, this.#clock.monotonicMs())
  }

  /** Nothing is left above the marks: the next claim need not read the deleted rows there again. */
  #moveUp(lanes: Map<number, Lane>, look: Look): void {
    for (const [at, name] of look.lanes.entries()) {
      const lane = lanes.get(name)
      if (lane === undefined || look.to[at] !== HIGHEST) continue
      // The mark was lowered after the look: what is there now was not looked at.
      if (lane.mark < (look.from[at] ?? HIGHEST)) continue
      if (lane.headStartMs !== undefined) this.#moveToPresent(lane, lane.headStartMs, look)
      // Others took the announced jobs. The present rank of this lane is unknown until the next wake-up.
      else if (lane.hints.every((hint) => hint.look < look.number)) lanes.delete(name)
    }
  }

  #moveToPresent(lane: Lane, headStartMs: number, look: Look): void {
    if (this.#storeAheadMs === undefined) return
    const nowMs = this.#clock.monotonicMs() + this.#storeAheadMs
    moveMark(lane, Math.max(lane.mark, Math.floor(nowMs - IN_FLIGHT_MS - headStartMs)), look)
  }

  /** A job is ready at this rank that was not there before. */
  lower(queue: string, lane: number, rank: number): void {
    if (lane === SUSPECTS_LANE) return
    const { lanes } = this.#of(queue)
    const known = lanes.get(lane)
    const hint = { rank, look: this.#looks }
    if (known === undefined) {
      lanes.set(lane, { mark: rank, headStartMs: undefined, hints: [hint], movedBy: 0, sweptTo: LOWEST })
      return
    }
    addHint(known.hints, hint)
    known.mark = Math.min(rank, known.mark)
  }

  /** Anything may have come in anywhere: the next claim sweeps everything. */
  sweepSoon(queue?: string): void {
    for (const [name, { pace }] of this.#queues)
      if (queue === undefined || name === queue) pace.missed(this.#looks)
  }

  #of(queue: string): QueueLanes {
    let known = this.#queues.get(queue)
    if (known === undefined) {
      known = { lanes: new Map(), pace: new SweepPace() }
      this.#queues.set(queue, known)
    }
    return known
  }
}

type Range = readonly [lane: number, from: number, to: number]

function columns(ranges: readonly Range[]): Pick<Look, 'lanes' | 'from' | 'to'> {
  return {
    lanes: ranges.map(([lane]) => lane),
    from: ranges.map(([, from]) => from),
    to: ranges.map(([, , to]) => to),
  }
}

/** Ranks and looks of the list grow. It stays short although a worker without a free slot looks nowhere for hours. */
function addHint(hints: Hint[], hint: Hint): void {
  // Earlier hints of higher ranks say nothing more: this one outlives them.
  while ((hints.at(-1)?.rank ?? LOWEST) >= hint.rank) hints.pop()
  if (hints.at(-1)?.look === hint.look) return
  hints.push(hint)
  const [lowest, next] = hints
  // Merged, two hints hold the mark back for longer than they must: that costs a claim a few rows.
  if (hints.length > MOST_HINTS && lowest !== undefined && next !== undefined)
    hints.splice(0, 2, { rank: lowest.rank, look: next.look })
}

/**
 * A wake-up that came after the look began tells of a job that its answer cannot know; earlier ones are answered. Each
 * hint keeps its own look: if a new one renewed the old ones, a producer that never pauses would hold the mark back
 * forever.
 */
function moveMark(lane: Lane, mark: number, look: Look): void {
  // An answer that was overtaken knows less than the one that overtook it.
  if (look.number < lane.movedBy) {
    lane.mark = Math.min(mark, lane.mark)
    return
  }
  lane.movedBy = look.number
  lane.hints = lane.hints.filter((hint) => hint.look >= look.number)
  lane.mark = Math.min(mark, lane.hints[0]?.rank ?? HIGHEST)
}

/**
 * A claim that was filled below what it was to look at has not seen the rest. Ranks of all lanes compare, so what is
 * left ranks behind the last job that was taken.
 */
function lowerTo(lanes: ReadonlyMap<number, Lane>, look: Look, rank: number): void {
  for (const [at, name] of look.lanes.entries()) {
    const lane = lanes.get(name)
    const to = look.to[at] ?? HIGHEST
    if (lane !== undefined && to < HIGHEST && rank < to)
      lane.mark = Math.min(lane.mark, Math.max(rank, look.from[at] ?? LOWEST))
  }
}

/**
 * What to sweep below the marks: the window of each lane, and with the last one all of the lanes of which too little is
 * known.
 */
function* rangesOf(lanes: ReadonlyMap<number, Lane>, window: Window): Iterable<Range> {
  for (const lane of ALL_LANES) {
    const { mark = HIGHEST, headStartMs, sweptTo = LOWEST } = lanes.get(lane) ?? {}
    if (headStartMs === undefined) {
      if (window.end === null) yield [lane, LOWEST, mark]
      continue
    }
    const from = window.start === LOWEST ? LOWEST : sweptTo
    const to = window.end === null ? mark : Math.min(mark, Math.floor(window.end - headStartMs))
    if (from < to) yield [lane, from, to]
  }
}

function spanOf(lanes: ReadonlyMap<number, Lane>): Span {
  const times = Array.from(lanes.values(), ({ mark, headStartMs = NaN }) => mark + headStartMs)
  return { lanes: lanes.size, newest: Math.max(LOWEST, ...times.filter(Number.isFinite)) }
}
