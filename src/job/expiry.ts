/**
 * When a job is too late to be worth an attempt. It counts from when the job was first due, retries and all; but one that
 * was brought back since (replayed, rescheduled, snoozed) is asked for anew, and counts from then. By the store's clock.
 */
import type { ClaimedJob, Due } from './record.ts'

/** The reason of the cancel that such a job ends with. */
export const EXPIRED = 'expired'

/** Infinity for a job that is never too late. */
export function expiresAt(job: ClaimedJob): number {
  const { expires } = job.envelope
  if (expires === undefined) return Infinity
  const isFresh = job.attempt <= 1 && job.crashes === 0
  return (isFresh ? job.dueAt : firstDueAt(job, expires.from)) + expires.inMs
}

function firstDueAt({ createdAt }: ClaimedJob, due: Due): number {
  return 'atMs' in due ? Math.max(due.atMs, createdAt) : createdAt + due.inMs
}
