/**
 * When a job is too late to be worth an attempt, by the store's clock. A first attempt is, so long after it is due: a job
 * that is replayed, rescheduled or snoozed is due anew. Another attempt is, so long after the job was first due.
 */
import type { ClaimedJob, Due } from './record.ts'

/** The reason of the cancel that a job ends with which was never tried. */
export const EXPIRED = 'expired'

/** Whether nothing has gone wrong with it so far. */
export function isFirst({ attempt, crashes }: ClaimedJob): boolean {
  return attempt <= 1 && crashes === 0
}

/** Until when the attempt can be started; Infinity for a job that is never too late. */
export function expiresAt(job: ClaimedJob): number {
  const { expires } = job.envelope
  if (expires === undefined) return Infinity
  return isFirst(job) ? job.dueAt + expires.inMs : triedUntil(job)
}

/** Until when it is tried again. */
export function triedUntil({ createdAt, envelope: { expires } }: ClaimedJob): number {
  return expires === undefined ? Infinity : firstDueAt(createdAt, expires.from) + expires.inMs
}

function firstDueAt(createdAt: number, due: Due): number {
  return 'atMs' in due ? Math.max(due.atMs, createdAt) : createdAt + due.inMs
}
