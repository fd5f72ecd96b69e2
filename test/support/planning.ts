/** States and work for tests of the planner. */
import type { ClaimRequest } from '../../src/stores/store.ts'
import { newLoopState, type LoopState, type Plan, type Work } from '../../src/worker/plan.ts'

export const POLL_MS = 1_000
/** A worker that has just polled: nothing is due before 1,000. */
export function state(
  given: Partial<LoopState> = {},
  weights: Record<string, number> = { default: 1 },
): LoopState {
  const fresh = newLoopState(new Map(Object.entries(weights)), { pollMs: POLL_MS, batchSize: 1_000 }, 0)
  return { ...fresh, nextPollMs: POLL_MS, ...given }
}

/** All queues answered "empty". */
export function dry(given?: Partial<LoopState>, weights?: Record<string, number>): LoopState {
  const made = state(given, weights)
  for (const queue of made.queues) queue.dry = true
  return made
}

export function work(given: Partial<Work> = {}): Work {
  return {
    claims: true,
    freeSlots: 5,
    inLine: 0,
    oldestMs: undefined,
    batchRoom: new Map(),
    batchReadyMs: [],
    holdsSuspect: false,
    settles: 0,
    reportsDue: false,
    takesOffers: true,
    ...given,
  }
}

export function claimOf({ call }: Plan): ClaimRequest | null {
  return call?.claim?.request ?? null
}
