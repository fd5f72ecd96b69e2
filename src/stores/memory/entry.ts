/** A job inside the in-memory store: its facts, and the little that changes. */
import type { AttemptError } from '../../job/failure.ts'
import type { Token, WorkerId } from '../../job/ids.ts'
import { rankOf } from '../../job/rank.ts'
import type { ClaimedJob, JobLogLine, JobRecord, NewJob, Progress } from '../../job/record.ts'
import type { JobState } from '../../job/states.ts'

/** The jobs of one claim, under one token. */
export interface LeaseEntry {
  readonly token: Token
  readonly worker: WorkerId
  readonly claimedAt: number
  /** By position; null once settled. */
  readonly open: (Entry | null)[]
  left: number
}

export interface Entry {
  /** Replaced as a whole when a unique key's conflict rule says so. */
  job: NewJob
  state: JobState
  attempt: number
  crashes: number
  readonly createdAt: number
  dueAt: number
  rank: number
  error: AttemptError | null
  /** Present while running. */
  lease: LeaseEntry | null
  position: number
  cancel: { readonly reason: string | null } | null
  progress: Progress | null
  log: readonly JobLogLine[]
  finishedAt: number
  result: string | null
  resultDropped: boolean
  runMs: number
  reason: string | null
}

const NO_LOG: readonly JobLogLine[] = []

export function newEntry(job: NewJob, state: JobState, nowMs: number, dueAt: number): Entry {
  return {
    job,
    state,
    attempt: 0,
    crashes: 0,
    createdAt: nowMs,
    dueAt,
    rank: rankOf(dueAt, job.headStartMs),
    error: null,
    lease: null,
    position: 0,
    cancel: null,
    progress: null,
    log: NO_LOG,
    finishedAt: 0,
    result: null,
    resultDropped: false,
    runMs: 0,
    reason: null,
  }
}

export function claimedJob(entry: Entry): ClaimedJob {
  const { job } = entry
  return {
    id: job.id,
    name: job.name,
    queue: job.queue,
    payload: job.payload,
    priority: job.priority,
    headStartMs: job.headStartMs,
    maxAttempts: job.maxAttempts,
    maxCrashes: job.maxCrashes,
    group: job.group,
    limits: job.limits,
    envelope: job.envelope,
    attempt: entry.attempt,
    crashes: entry.crashes,
    createdAt: entry.createdAt,
    dueAt: entry.dueAt,
  }
}

export function recordOf(entry: Entry): JobRecord {
  const facts = {
    ...claimedJob(entry),
    uniqueKey: entry.job.unique?.key ?? null,
    error: entry.error,
    log: entry.log,
    progress: entry.progress,
  }
  switch (entry.state) {
    case 'scheduled':
    case 'blocked':
    case 'ready':
      return { ...facts, state: entry.state }
    case 'running': {
      const { lease } = entry
      if (lease === null) throw new Error(`running job ${entry.job.id} without a lease`)
      const { worker, token, claimedAt } = lease
      return { ...facts, state: 'running', worker, token, claimedAt, cancelRequested: entry.cancel !== null }
    }
    case 'completed': {
      const { finishedAt, result, resultDropped, runMs } = entry
      return { ...facts, state: 'completed', finishedAt, result, resultDropped, runMs }
    }
    case 'dead':
      if (entry.error === null) throw new Error(`dead job ${entry.job.id} without an error`)
      return { ...facts, state: 'dead', finishedAt: entry.finishedAt, error: entry.error }
    case 'cancelled':
      return { ...facts, state: 'cancelled', finishedAt: entry.finishedAt, reason: entry.reason }
  }
}

export const byRank = (a: Entry, b: Entry): number => a.rank - b.rank || compareIds(a, b)
export const byDueTime = (a: Entry, b: Entry): number => a.dueAt - b.dueAt || compareIds(a, b)
export const byFinish = (a: Entry, b: Entry): number => a.finishedAt - b.finishedAt || compareIds(a, b)

export function compareIds(a: Entry, b: Entry): number {
  return a.job.id < b.job.id ? -1 : a.job.id > b.job.id ? 1 : 0
}
