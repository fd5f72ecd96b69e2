/**
 * Scans for ready jobs that no wake-up announced, separately from the claims: under an old transaction such a look
 * reads many deleted rows, and a claim that did it would hold up all jobs behind it.
 */
import type { Clock } from '../../std/clock.ts'
import { brokenAnswer } from '../broken-answer.ts'
import type { Queryable } from './executor.ts'
import type { Lanes, Overlooked, WindowLook } from './lanes.ts'
import { intArray } from './literals.ts'
import type { Statements } from './statements.ts'

export interface SweepParts {
  readonly db: Queryable
  readonly statements: Statements
  readonly lanes: Lanes
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/** Not awaited by claims: the next one includes what it finds. Never rejects. */
export async function sweepBeside(
  { db, statements, lanes, clock }: SweepParts,
  queue: string,
  look: WindowLook,
): Promise<void> {
  const sentMs = clock.monotonicMs()
  try {
    const ranges = [intArray(look.lanes), intArray(look.from), intArray(look.to)]
    const [row] = await db.query<Overlooked>(statements.overlooked, [queue, ...ranges])
    if (row === undefined) throw brokenAnswer('postgres', 'the function overlooked returned no row')
    lanes.swept(queue, look, row)
  } catch {
    // The store may be away or closed; claims say so. The same window is looked at again later.
    lanes.windowFailed(queue, clock.monotonicMs() - sentMs)
  }
}
