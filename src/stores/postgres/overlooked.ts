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

export interface LookBesideParts {
  readonly db: Queryable
  readonly statements: Statements
  readonly lanes: Lanes
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/** Starts a scan if one is due. It is not awaited: the next claim includes what it finds. */
export function lookBeside(parts: LookBesideParts, queue: string): void {
  const look = parts.lanes.nextWindow(queue)
  if (look !== null) void sweep(parts, queue, look)
}

async function sweep(
  { db, statements, lanes, clock }: LookBesideParts,
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
