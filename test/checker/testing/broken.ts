/** What the tests ask of a history: which rules it breaks, under bounds that are small and easy to count with. */
import { check } from '../check.ts'
import type { HistoryEvent } from '../history.ts'
import type { CheckOptions } from '../options.ts'
import { LEASE_MS, type Story } from './story.ts'

export const BOUNDS: CheckOptions = {
  leaseMs: LEASE_MS,
  sweepMs: 200,
  epsilonMs: 100,
  failoverMs: 300,
  lateMs: 100,
  overtakeMs: 300,
  reclaimMs: 5_000,
  starveMs: 2_000,
  stopSlackMs: 0,
}

/** 'S3 a' for each rule that a job broke, 'L2' where no job is concerned. */
export function broken(story: Story | readonly HistoryEvent[], options: CheckOptions = {}): string[] {
  const events = 'events' in story ? story.events : story
  const { violations } = check(events, { ...BOUNDS, ...options })
  return violations.map(({ rule, job }) => (job === null ? rule : `${rule} ${job}`))
}
