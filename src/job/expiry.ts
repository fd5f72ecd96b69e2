/**
 * Decides when a job is too late to attempt, by the store's clock. A first attempt expires `expiresIn` after the job is
 * due; a replay, reschedule or snooze makes it due again. Later attempts expire that long after the job was first due.
 */
import type { ClaimedJob, Due } from './record.ts'

/** Cancel reason for a job that expired before its first attempt. */
export const EXPIRED = 'expired'

/** Whether it has no failed attempt and no crash so far. */
export function isFirst({ attempt, crashes }: ClaimedJob): boolean {
  return attempt <= 1 && crashes === 0
}

/** Time until which an attempt may start; Infinity for a job that does not expire. */
export function expiresAt(job: ClaimedJob): number {
  const { expires } = job.envelope
  if (expires === undefined) return Infinity
  return isFirst(job) ? job.dueAt + expires.inMs : triedUntil(job)
}

/** Time until which it is retried. */
export function triedUntil({ createdAt, envelope: { expires } }: ClaimedJob): number {
  return expires === undefined ? Infinity : firstDueAt(createdAt, expires.from) + expires.inMs
}

function firstDueAt(createdAt: number, due: Due): number {
  return 'atMs' in due ? Math.max(due.atMs, createdAt) : createdAt + due.inMs
}
