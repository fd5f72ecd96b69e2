/** Finds the next tick of a schedule by the store's clock, even if that clock was wrong before. */
import type { ScheduleFacts } from './stored.ts'
import type { NextTick } from './timing.ts'

export interface FirstOpen {
  /** The first tick that has not fired; null if there is none. */
  readonly tick: number | null
  /**
   * The stored tick lies further ahead than any tick can: it was written before the store's clock was set back, or by
   * another clock. It must be stored again, or the schedule would not fire until then.
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
