/** What a schedule has to do now: a pure step from its rules and the time. */
import type { Rules } from './spec.ts'
import type { NextSlot } from './timing.ts'

export interface DueSlots {
  /** In order; each is followed by the next slot after it. */
  readonly fire: readonly { readonly slot: number; readonly next: number | null }[]
  /** How many are left out. */
  readonly skipped: number
  /** The first slot that is not due yet. */
  readonly next: number | null
}

/** A slot is missed once it is older than half the time to the one after it, within these bounds. */
const SOONEST_MISSED_MS = 2_000
const LATEST_MISSED_MS = 60_000
/** So many are looked at in one go; those before them are left out where only the last count. */
const MOST_LOOKED_AT = 200_000

export function dueSlots(
  rules: Pick<Rules, 'catchUp' | 'catchUpLimit'>,
  nextSlot: NextSlot,
  from: number,
  nowMs: number,
): DueSlots {
  const slots: number[] = []
  let next: number | null = from
  for (let looked = 0; next !== null && next <= nowMs && looked < MOST_LOOKED_AT; looked++) {
    slots.push(next)
    next = nextSlot(next)
  }
  const wanted = wantedOf(rules, slots, next, nowMs)
  return {
    fire: wanted.map((slot, index) => ({ slot, next: wanted[index + 1] ?? next })),
    skipped: slots.length - wanted.length,
    next,
  }
}

function wantedOf(
  { catchUp, catchUpLimit }: Pick<Rules, 'catchUp' | 'catchUpLimit'>,
  slots: readonly number[],
  next: number | null,
  nowMs: number,
): readonly number[] {
  const latest = slots.at(-1)
  if (latest === undefined) return []
  if (catchUp === 'all') return slots.slice(-catchUpLimit)
  if (catchUp === 'latest') return [latest]
  const halfMs = next === null ? Infinity : (next - latest) / 2
  const missedMs = Math.max(SOONEST_MISSED_MS, Math.min(LATEST_MISSED_MS, halfMs))
  return nowMs - latest <= missedMs ? [latest] : []
}
