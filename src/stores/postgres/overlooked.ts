/**
 * Scans for ready jobs that no wake-up announced, separately from the claims: under an old transaction such a scan
 * reads many deleted rows, and a claim that did it would hold up all jobs behind it.
 */
import type { Clock } from '../../std/clock.ts'
import { brokenAnswer } from '../broken-answer.ts'
import type { Background } from './background.ts'
import type { Queryable } from './executor.ts'
import type { Lanes, Overlooked, WindowLook } from './lanes.ts'
import { intArray } from './literals.ts'
import type { Statements } from './statements.ts'

export interface SweepParts {
  readonly db: Queryable
  readonly statements: Statements
  readonly lanes: Lanes
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly background: Background
}

/** Claims do not await it; the next one includes what it finds. Never rejects. */
export async function sweepBeside(
  { db, statements, lanes, clock, background }: SweepParts,
  queue: string,
  look: WindowLook,
): Promise<void> {
  const sentMs = clock.monotonicMs()
  try {
    const ranges = [intArray(look.lanes), intArray(look.from), intArray(look.to)]
    const [row] = await db.query<Overlooked>(statements.overlooked, [queue, ...ranges])
    if (row === undefined) throw brokenAnswer('postgres', 'the function overlooked returned no row')
    lanes.swept(queue, look, row)
  } catch (error) {
    // The same window is swept again later.
    const isLasting = background.failed('look for jobs that no wake-up announced', error)
    lanes.windowFailed(queue, clock.monotonicMs() - sentMs, isLasting)
  }
}
