/**
 * Where claims begin to look. Each lane of a queue (a priority, or the crash suspects) is searched from the rank of its
 * last claim on, the mark: rows that were deleted below it stay in the index for as long as an old transaction might see
 * them, and reading past them costs more with every job. Wake-ups tell of every job that comes in below the mark, and
 * lower it. As a backstop, a claim now and then sweeps what is below the mark as well: all of it, or a window of ranks
 * if that costs too much. However much it costs, a round of windows ends after a few, so every rank is looked at.
 */
import type { Clock } from '../../std/clock.ts'

export interface Look {
  /** A lane may be listed twice: from its mark on, and the window that is swept. */
  readonly lanes: readonly number[]
  readonly from: readonly number[]
  /** Exclusive. */
  readonly to: readonly number[]
  readonly sweep: boolean
  /** Counts the looks: tells what a wake-up came after. */
  readonly number: number
  /** What is swept, as times. */
  readonly window: Window | null
}

/** Ranks by time, without the head start. Null for the end: up to the marks. */
interface Window {
  readonly start: number
  readonly end: number | null
}

/** What a claim answered to a look. */
export interface Found {
  /**
   * `all`: it took everything that it could lock there. `some`: more may be left. `closed`: it did not look, because the
   * queue is paused or the worker is gone.
   */
  readonly extent: 'all' | 'some' | 'closed'
  /** The last job that it took from each lane, in order of rank; without suspects. */
  readonly taken: readonly { readonly lane: number; readonly rank: number; readonly headStartMs: number }[]
}

export const SUSPECTS_LANE = 10
const ALL_LANES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] as const
/** Below and above any rank: a head start is worth ten years per level at most. */
const LOWEST = -1e15
const HIGHEST = 1e15

const SWEEP_EVERY_MS = 250
/** A sweep may take a tenth of the time, but comes after this at the latest. */
const SWEEP_COST_SHARE = 10
const SWEEP_AT_LATEST_MS = 5_000
/** A window that costs more than this is halved the next time, one that costs less than a quarter of it is doubled. */
const WINDOW_COST_MS = 10
const SMALLEST_WINDOW_MS = 10
/**
 * A round takes this long: then a window covers the rest, up to the marks. If that takes long the next round takes longer,
 * because a sweep may take a tenth of the time.
 */
const ROUND_MS = 5_000
const LONGEST_ROUND_MS = 30_000
/** A look that fails after this long was probably given up because it had too much to read. */
const TOO_SLOW_MS = 500
/** Windows divide at most this much time. What is older belongs to the first one. */
const OLDEST_WINDOW_MS = 86_400_000
/**
 * Once all is taken, the mark moves up to now minus this: a job that is enqueued now ranks higher, unless its
 * transaction takes longer, and then its wake-up tells.
 */
const IN_FLIGHT_MS = 1_000

const EVERYTHING: Window = { start: LOWEST, end: null }

interface Lane {
  mark: number
  /** Of the newest job that was claimed; undefined before the first: then it was a wake-up that told of the lane. */
  headStartMs: number | undefined
  /** The lowest rank that wake-ups told of, and the newest look by then: answers of that look and older ones don't know it. */
  hint: { readonly rank: number; readonly look: number } | undefined
  /** Up to here the windows of this round have swept. */
  sweptTo: number
}

interface QueueLanes {
  readonly lanes: Map<number, Lane>
  nextSweepMs: number
  /** Wake-ups may have been lost before the look after this one: it sweeps everything. */
  missedAt: number
  /** What a look takes that does not sweep; undefined until there was one. */
  usualMs: number | undefined
  /** A sweep took long, and it is not known yet what is usual: first look without one. */
  mustCompare: boolean
  /** Where the next window begins, how wide it is, and when the last one of this round is due. */
  cursor: number
  windowMs: number
  roundEndsMs: number
  /** The upper end of the last sweep that reached the marks at once: below it there are few dead rows. */
  cleanUpTo: number
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
    const known = this.#of(queue)
    const window = this.#nextWindow(known, mustSweep)
    const ranges: [lane: number, from: number, to: number][] = []
    for (const [lane, { mark }] of known.lanes) ranges.push([lane, mark, HIGHEST])
    if (window !== null) ranges.push(...rangesOf(known, window))
    // There are never many of them, so they are looked for from the start.
    if (suspects) ranges.push([SUSPECTS_LANE, LOWEST, HIGHEST])
    return {
      lanes: ranges.map(([lane]) => lane),
      from: ranges.map(([, from]) => from),
      to: ranges.map(([, , to]) => to),
      sweep: window !== null,
      number: ++this.#looks,
      window,
    }
  }

  /** The store's time of an answer that has just arrived. */
  sawTime(storeMs: number): void {
    this.#storeAheadMs = storeMs - this.#clock.monotonicMs()
  }

  answered(queue: string, look: Look, tookMs: number, { extent, taken }: Found): void {
    const known = this.#of(queue)
    if (extent === 'closed') return
    this.#noteCost(known, look, tookMs)
    for (const { lane, rank, headStartMs } of taken) {
      const mine = known.lanes.get(lane)
      if (mine === undefined) {
        known.lanes.set(lane, { mark: rank, headStartMs, hint: undefined, sweptTo: LOWEST })
        continue
      }
      mine.headStartMs = headStartMs
      // The last rank that was taken, also if it is lower than before: ranks come back.
      moveMark(mine, rank, look)
    }
    const last = taken.at(-1)
    if (extent === 'all') this.#moveUp(known.lanes, look)
    else if (last !== undefined) lowerTo(known, look, last.rank)
    const isSure = extent === 'all' || last !== undefined
    if (isSure && look.window !== null && isWhole(look.window) && look.number > known.missedAt)
      known.missedAt = -1
  }

  /** The call failed. If it had taken something, that is back, and the answers of other looks may have moved the marks past it. */
  failed(queue: string, look: Look, tookMs: number): void {
    for (const [at, lane] of look.lanes.entries()) {
      const from = look.from[at] ?? LOWEST
      // Lanes without a mark are left to the sweeps.
      if (look.to[at] === HIGHEST && from > LOWEST) this.lower(queue, lane, from)
    }
    if (look.window !== null) this.#sweepFailed(this.#of(queue), look.window, tookMs)
  }

  /** If the sweep was too much for one statement, it goes on in smaller windows. In any case the next one waits. */
  #sweepFailed(known: QueueLanes, window: Window, tookMs: number): void {
    const nowMs = this.#clock.monotonicMs()
    known.nextSweepMs = nowMs + pauseMs(known, tookMs)
    const all = newestTime(known) - oldest(known)
    if (tookMs < TOO_SLOW_MS || known.lanes.size === 0 || !(all > 0)) return
    if (isWhole(window)) {
      // A round of windows looks at everything too.
      known.missedAt = -1
      startRound(known, LONGEST_ROUND_MS, nowMs)
    }
    known.windowMs = Math.max(Math.min(known.windowMs, all) / 4, SMALLEST_WINDOW_MS)
    known.roundEndsMs = nowMs + LONGEST_ROUND_MS
  }

  /** Nothing is left above the marks: the next claim need not read the deleted rows there again. */
  #moveUp(lanes: Map<number, Lane>, look: Look): void {
    for (const [at, name] of look.lanes.entries()) {
      const lane = lanes.get(name)
      if (lane === undefined || look.to[at] !== HIGHEST) continue
      // The mark was lowered after the look: what is there now was not looked at.
      if (lane.mark < (look.from[at] ?? HIGHEST)) continue
      if (lane.headStartMs !== undefined) this.#moveToPresent(lane, lane.headStartMs, look)
      // Others took what a wake-up told of. Nobody knows where the present is in this lane: the next wake-up tells.
      else if (lane.hint === undefined || lane.hint.look < look.number) lanes.delete(name)
    }
  }

  #moveToPresent(lane: Lane, headStartMs: number, look: Look): void {
    if (this.#storeAheadMs === undefined) return
    const nowMs = this.#clock.monotonicMs() + this.#storeAheadMs
    moveMark(lane, Math.max(lane.mark, Math.floor(nowMs - IN_FLIGHT_MS - headStartMs)), look)
  }

  #noteCost(known: QueueLanes, look: Look, tookMs: number): void {
    const { usualMs } = known
    if (look.window === null) {
      known.usualMs = usualMs === undefined ? tookMs : 0.8 * usualMs + 0.2 * tookMs
      known.mustCompare = false
      return
    }
    // The way to the server and back is not the sweep's fault.
    const costMs = Math.max(0, tookMs - (usualMs ?? 0))
    if (usualMs !== undefined) known.usualMs = Math.min(usualMs, tookMs)
    else known.mustCompare = tookMs > WINDOW_COST_MS
    const nowMs = this.#clock.monotonicMs()
    endWindow(known, look, look.window, costMs, nowMs)
    // Wake-ups were lost since this look began: the next one sweeps, however soon.
    if (known.missedAt >= look.number) return
    const nextMs = nowMs + pauseMs(known, costMs)
    known.nextSweepMs =
      known.lanes.size === 0 ? nextMs : Math.min(nextMs, Math.max(known.roundEndsMs, nowMs + SWEEP_EVERY_MS))
  }

  /** A job is ready at this rank that was not there before. */
  lower(queue: string, lane: number, rank: number): void {
    if (lane === SUSPECTS_LANE) return
    const { lanes } = this.#of(queue)
    const known = lanes.get(lane)
    if (known === undefined) {
      const hint = { rank, look: this.#looks }
      lanes.set(lane, { mark: rank, headStartMs: undefined, hint, sweptTo: LOWEST })
      return
    }
    known.hint = { rank: Math.min(rank, known.hint?.rank ?? HIGHEST), look: this.#looks }
    known.mark = Math.min(rank, known.mark)
  }

  /** Anything may have come in anywhere: the next look sweeps everything. */
  sweepSoon(queue?: string): void {
    for (const [name, known] of this.#queues)
      if (queue === undefined || name === queue) {
        known.missedAt = this.#looks
        known.nextSweepMs = 0
      }
  }

  #nextWindow(known: QueueLanes, mustSweep: boolean): Window | null {
    const nowMs = this.#clock.monotonicMs()
    if (!mustSweep && nowMs < known.nextSweepMs) return null
    if (mustSweep || known.missedAt >= 0) return EVERYTHING
    if (known.mustCompare) return null
    const { cursor: start, windowMs, roundEndsMs } = known
    if (known.lanes.size === 0 || windowMs === Infinity || nowMs >= roundEndsMs) return { start, end: null }
    const end = Math.max(start, oldest(known)) + windowMs
    return { start, end: end < newestTime(known) ? end : null }
  }

  #of(queue: string): QueueLanes {
    let known = this.#queues.get(queue)
    if (known === undefined) {
      known = {
        lanes: new Map(),
        nextSweepMs: 0,
        missedAt: -1,
        usualMs: undefined,
        mustCompare: false,
        cursor: LOWEST,
        windowMs: Infinity,
        roundEndsMs: Infinity,
        cleanUpTo: LOWEST,
      }
      this.#queues.set(queue, known)
    }
    return known
  }
}

/** A wake-up that came after the look began tells of a job that its answer cannot know. */
function moveMark(lane: Lane, mark: number, look: Look): void {
  if (lane.hint !== undefined && lane.hint.look < look.number) lane.hint = undefined
  lane.mark = Math.min(mark, lane.hint?.rank ?? HIGHEST)
}

/**
 * A claim that was filled below what it was to look at has not seen the rest. Ranks of all lanes compare, so what is left
 * ranks behind the last job that was taken.
 */
function lowerTo({ lanes }: QueueLanes, look: Look, rank: number): void {
  for (const [at, name] of look.lanes.entries()) {
    const lane = lanes.get(name)
    const to = look.to[at] ?? HIGHEST
    if (lane !== undefined && to < HIGHEST && rank < to)
      lane.mark = Math.min(lane.mark, Math.max(rank, look.from[at] ?? LOWEST))
  }
}

/** How long to wait after a sweep that cost so much. One that cannot be divided, because no lane is known, waits longer. */
function pauseMs({ lanes }: QueueLanes, costMs: number): number {
  const latestMs = lanes.size === 0 ? LONGEST_ROUND_MS : SWEEP_AT_LATEST_MS
  return Math.min(Math.max(SWEEP_EVERY_MS, SWEEP_COST_SHARE * costMs), latestMs)
}

function isWhole({ start, end }: Window): boolean {
  return start === LOWEST && end === null
}

/** What to sweep below the marks: the window of each lane, and with the last one all of the lanes of which too little is known. */
function* rangesOf(known: QueueLanes, window: Window): Iterable<[lane: number, from: number, to: number]> {
  for (const lane of ALL_LANES) {
    const { mark = HIGHEST, headStartMs, sweptTo = LOWEST } = known.lanes.get(lane) ?? {}
    if (headStartMs === undefined) {
      if (window.end === null) yield [lane, LOWEST, mark]
      continue
    }
    const from = window.start === LOWEST ? LOWEST : sweptTo
    const to = window.end === null ? mark : Math.min(mark, Math.floor(window.end - headStartMs))
    if (from < to) yield [lane, from, to]
  }
}

function endWindow(known: QueueLanes, look: Look, window: Window, costMs: number, nowMs: number): void {
  const end = newestTime(known)
  const all = end - oldest(known)
  if (isWhole(window)) {
    if (costMs <= WINDOW_COST_MS) {
      known.cleanUpTo = end
      known.windowMs = Infinity
    } else if (known.windowMs === Infinity && all > 0) {
      known.windowMs = Math.max(all / 4, SMALLEST_WINDOW_MS)
    }
    startRound(known, costMs, nowMs)
    return
  }
  // Two looks at once swept the same window.
  if (window.start !== known.cursor) return
  if (costMs > WINDOW_COST_MS) known.windowMs = Math.max(known.windowMs / 2, SMALLEST_WINDOW_MS)
  else if (costMs < WINDOW_COST_MS / 4) known.windowMs *= 2
  if (window.end !== null && window.end < end) {
    known.cursor = window.end
    for (const [at, lane] of look.lanes.entries()) {
      const swept = known.lanes.get(lane)
      const to = look.to[at] ?? HIGHEST
      if (swept !== undefined && to < HIGHEST) swept.sweptTo = Math.max(swept.sweptTo, to)
    }
    return
  }
  startRound(known, costMs, nowMs)
  // One window covers everything again: the dead rows are gone.
  if (known.windowMs > all) known.windowMs = Infinity
}

/** `costMs`: of the last window. */
function startRound(known: QueueLanes, costMs: number, nowMs: number): void {
  known.cursor = LOWEST
  known.roundEndsMs = nowMs + Math.min(Math.max(ROUND_MS, SWEEP_COST_SHARE * costMs), LONGEST_ROUND_MS)
  for (const lane of known.lanes.values()) lane.sweptTo = LOWEST
}

/** Where windows begin to divide the time. */
function oldest(known: QueueLanes): number {
  return Math.max(known.cleanUpTo, newestTime(known) - OLDEST_WINDOW_MS)
}

/** The marks as times: the newest of them. */
function newestTime({ lanes }: QueueLanes): number {
  const times = Array.from(lanes.values(), ({ mark, headStartMs = NaN }) => mark + headStartMs)
  return Math.max(LOWEST, ...times.filter(Number.isFinite))
}
