/**
 * Where claims begin to look. Each lane of a queue (a priority, or the suspects) is searched from the rank of its last
 * claim on, because what was deleted before it still stands in the index for as long as some old transaction might see
 * it. Whatever comes in below is told of, and lowers the mark; and now and then a claim sweeps from the start, so that
 * what was not told of is overtaken for a moment at most. No queue is called empty without a sweep.
 */
import type { Clock } from '../../std/clock.ts'

export interface Look {
  readonly lanes: readonly number[]
  readonly from: readonly number[]
  readonly sweep: boolean
}

export const SUSPECTS_LANE = 10
const ALL_LANES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] as const
/** Lower than any rank: a head start is worth ten years a level at most. */
const LOWEST = -1e15

const SWEEP_EVERY_MS = 250
/** A sweep may cost a tenth of the time, but comes after this at the latest. */
const SWEEP_COST_SHARE = 10
const SWEEP_AT_LATEST_MS = 5_000

interface QueueMarks {
  readonly marks: Map<number, number>
  nextSweepMs: number
}

export class Lanes {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #queues = new Map<string, QueueMarks>()

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  look(queue: string, suspects: boolean, mustSweep: boolean): Look {
    const known = this.#of(queue)
    const sweep = mustSweep || known.marks.size === 0 || this.#clock.monotonicMs() >= known.nextSweepMs
    if (sweep) {
      const lanes = suspects ? [...ALL_LANES, SUSPECTS_LANE] : ALL_LANES
      return { lanes, from: lanes.map(() => LOWEST), sweep }
    }
    const marks = [...known.marks].filter(([lane]) => lane !== SUSPECTS_LANE)
    // There are few of them, ever: they are looked for from the start.
    if (suspects) marks.push([SUSPECTS_LANE, LOWEST])
    return { lanes: marks.map(([lane]) => lane), from: marks.map(([, rank]) => rank), sweep }
  }

  /** The mark is the last rank that was taken, also where it is lower than before: ranks come back. */
  taken(queue: string, lane: number, rank: number): void {
    this.#of(queue).marks.set(lane, rank)
  }

  swept(queue: string, tookMs: number): void {
    const pauseMs = Math.min(Math.max(SWEEP_EVERY_MS, SWEEP_COST_SHARE * tookMs), SWEEP_AT_LATEST_MS)
    this.#of(queue).nextSweepMs = this.#clock.monotonicMs() + pauseMs
  }

  /** Something stands at this rank that was not there before. */
  lower(queue: string, lane: number, rank: number): void {
    const { marks } = this.#of(queue)
    const mark = marks.get(lane)
    if (mark === undefined || rank < mark) marks.set(lane, rank)
  }

  /** Anything may have come in anywhere. */
  forget(queue?: string): void {
    if (queue === undefined) this.#queues.clear()
    else this.#queues.delete(queue)
  }

  #of(queue: string): QueueMarks {
    let known = this.#queues.get(queue)
    if (known === undefined) {
      known = { marks: new Map(), nextSweepMs: 0 }
      this.#queues.set(queue, known)
    }
    return known
  }
}
