/** Which ticks of a schedule to fire now: a pure function of its rules and the time. */
import type { Rules } from './spec.ts'
import type { NextTick } from './timing.ts'

export interface DueTicks {
  /** In order; each is followed by the next tick after it. */
  readonly fire: readonly { readonly tick: number; readonly next: number | null }[]
  /** Number of due ticks that are not fired. */
  readonly skipped: number
  /** The first tick that is not due yet. */
  readonly next: number | null
}

/** A tick counts as missed once it is late by half the time to the next tick, within these bounds. */
const SOONEST_MISSED_MS = 2_000
const LATEST_MISSED_MS = 60_000
/** Maximum number of ticks that one call goes through. */
const MOST_LOOKED_AT = 200_000

export function dueTicks(
  rules: Pick<Rules, 'catchUp' | 'catchUpLimit'>,
  nextTick: NextTick,
  from: number,
  nowMs: number,
): DueTicks {
  const ticks: number[] = []
  let next: number | null = from
  for (let looked = 0; next !== null && next <= nowMs && looked < MOST_LOOKED_AT; looked++) {
    ticks.push(next)
    next = nextTick(next)
  }
  const wanted = wantedOf(rules, ticks, next, nowMs)
  return {
    fire: wanted.map((tick, index) => ({ tick, next: wanted[index + 1] ?? next })),
    skipped: ticks.length - wanted.length,
    next,
  }
}

function wantedOf(
  { catchUp, catchUpLimit }: Pick<Rules, 'catchUp' | 'catchUpLimit'>,
  ticks: readonly number[],
  next: number | null,
  nowMs: number,
): readonly number[] {
  const latest = ticks.at(-1)
  if (latest === undefined) return []
  if (catchUp === 'all') return ticks.slice(-catchUpLimit)
  if (catchUp === 'latest') return [latest]
  const halfMs = next === null ? Infinity : (next - latest) / 2
  const missedMs = Math.max(SOONEST_MISSED_MS, Math.min(LATEST_MISSED_MS, halfMs))
  return nowMs - latest <= missedMs ? [latest] : []
}
