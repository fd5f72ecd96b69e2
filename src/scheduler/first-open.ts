/** Which tick of a schedule comes next, by the store's clock, also after that clock was wrong. */
import type { ScheduleFacts } from './stored.ts'
import type { NextSlot } from './timing.ts'

export interface FirstOpen {
  /** The first tick that has not been fired; null if none comes. */
  readonly slot: number | null
  /**
   * What is stored lies further ahead than any tick can: it was written before the store's clock was put back, or from
   * another clock. It has to be stored anew, or the schedule would be silent until then.
   */
  readonly isAstray: boolean
}

/** Clocks are set by less than this without anybody noticing. */
const UNNOTICED_MS = 2_000

export function firstOpen(
  { nextSlot, lastSlot }: Pick<ScheduleFacts, 'nextSlot' | 'lastSlot'>,
  next: NextSlot,
  nowMs: number,
): FirstOpen {
  if (nextSlot === null) return { slot: null, isAstray: false }
  if (nextSlot > nowMs + UNNOTICED_MS) {
    const coming = next(nowMs)
    // One that was fired is not fired again, however early it was.
    const open = coming !== null && coming === lastSlot ? next(coming) : coming
    if (open !== null && nextSlot > open) return { slot: open, isAstray: true }
  }
  const isFired = lastSlot !== null && (nextSlot === lastSlot || (nextSlot < lastSlot && lastSlot <= nowMs))
  return { slot: isFired ? next(lastSlot) : nextSlot, isAstray: false }
}
