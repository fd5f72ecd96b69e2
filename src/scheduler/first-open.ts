/** Which tick of a schedule comes next, by the store's clock, also after that clock was wrong. */
import type { ScheduleFacts } from './stored.ts'
import type { NextTick } from './timing.ts'

export interface FirstOpen {
  /** The first tick that has not fired; null if there is none. */
  readonly tick: number | null
  /**
   * What is stored lies further ahead than any tick can: it was written before the store's clock was put back, or from
   * another clock. It has to be stored anew, or the schedule would be silent until then.
   */
  readonly isAstray: boolean
}

/** Ignore clock changes smaller than this. */
const UNNOTICED_MS = 2_000

export function firstOpen(
  { nextTick, lastTick }: Pick<ScheduleFacts, 'nextTick' | 'lastTick'>,
  next: NextTick,
  nowMs: number,
): FirstOpen {
  if (nextTick === null) return { tick: null, isAstray: false }
  if (nextTick > nowMs + UNNOTICED_MS) {
    const coming = next(nowMs)
    // A tick that has fired does not fire again, even if it was early.
    const open = coming !== null && coming === lastTick ? next(coming) : coming
    if (open !== null && nextTick > open) return { tick: open, isAstray: true }
  }
  const isFired = lastTick !== null && (nextTick === lastTick || (nextTick < lastTick && lastTick <= nowMs))
  return { tick: isFired ? next(lastTick) : nextTick, isAstray: false }
}
