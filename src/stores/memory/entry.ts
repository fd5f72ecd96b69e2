/** A job inside the in-memory store: its facts, and the little that changes. */
import type { AttemptError } from '../../job/failure.ts'
import type { Token, WorkerId } from '../../job/ids.ts'
import { rankOf } from '../../job/rank.ts'
import type { AttemptRecord, ClaimedJob, JobLogLine, JobRecord, NewJob, Progress } from '../../job/record.ts'
import type { StoredState } from '../../job/states.ts'

/** The jobs of one claim, under one token. */
export interface LeaseEntry {
  readonly token: Token
  readonly worker: WorkerId
  readonly claimedAt: number
  /** By position; null once settled. */
  readonly open: (Entry | null)[]
  left: number
}

/** How a job ended. */
export interface Ending {
  readonly at: number
  readonly result: string | null
  readonly resultDropped: boolean
  readonly runMs: number
  readonly reason: string | null
  /** The worker that settled it; null if none did. */
  readonly worker: WorkerId | null
}

/**
 * Small on purpose: with a million jobs waiting, most of their cost is garbage collection. So fields that few jobs
 * have, or only finished ones, are separate, and the rank is computed when needed.
 */
export interface Entry {
  /** Replaced as a whole when a unique key's conflict rule says so. */
  job: NewJob
  state: StoredState
  attempt: number
  crashes: number
  readonly createdAt: number
  dueAt: number
  error: AttemptError | null
  /** Present while running. */
  lease: LeaseEntry | null
  position: number
  cancel: { readonly reason: string | null; readonly heard: boolean } | null
  /** Null until an attempt leaves a record. */
  attempts: readonly AttemptRecord[] | null
  /** Progress and log lines of its handlers. */
  reported: { readonly progress: Progress | null; readonly log: readonly JobLogLine[] } | null
  /** Present once it is final. */
  end: Ending | null
}

const NO_LOG: readonly JobLogLine[] = []
const NO_ATTEMPTS: readonly AttemptRecord[] = []

export function newEntry(job: NewJob, state: StoredState, nowMs: number, dueAt: number): Entry {
  return {
    job,
    state,
    attempt: 0,
    crashes: 0,
    createdAt: nowMs,
    dueAt,
    error: null,
    lease: null,
    position: 0,
    cancel: null,
    attempts: null,
    reported: null,
    end: null,
  }
}

export function rank({ dueAt, job }: Readonly<Entry>): number {
  return rankOf(dueAt, job.headStartMs)
}

function endOf({ job, end }: Entry): Ending {
  if (end === null) throw new Error(`job ${job.id} is final without an end`)
  return end
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
    attempts: entry.attempts ?? NO_ATTEMPTS,
    log: entry.reported?.log ?? NO_LOG,
    progress: entry.reported?.progress ?? null,
  }
  switch (entry.state) {
    case 'scheduled':
    case 'ready':
      return { ...facts, state: entry.state }
    case 'running': {
      const { lease } = entry
      if (lease === null) throw new Error(`running job ${entry.job.id} without a lease`)
      const { worker, token, claimedAt } = lease
      return { ...facts, state: 'running', worker, token, claimedAt, cancelRequested: entry.cancel !== null }
    }
    case 'completed': {
      const { at: finishedAt, result, resultDropped, runMs, worker } = endOf(entry)
      if (worker === null) throw new Error(`completed job ${entry.job.id} without a worker`)
      return { ...facts, state: 'completed', finishedAt, result, resultDropped, runMs, worker }
    }
    case 'dead':
      if (entry.error === null) throw new Error(`dead job ${entry.job.id} without an error`)
      return { ...facts, state: 'dead', finishedAt: endOf(entry).at, error: entry.error }
    case 'cancelled':
      return { ...facts, state: 'cancelled', finishedAt: endOf(entry).at, reason: endOf(entry).reason }
  }
}

/** Resets a job that gets another input. Only for a job that is off its shelf. */
export function startOver(entry: Entry): void {
  entry.attempt = 0
  entry.crashes = 0
  entry.error = null
  entry.attempts = null
  entry.reported = null
}

/** Keeps the newest records. */
export function remember(entry: Entry, record: AttemptRecord, keep: number): void {
  entry.attempts = keep > 0 ? [...(entry.attempts ?? []), record].slice(-keep) : null
}

export const byRank = (a: Entry, b: Entry): number => rank(a) - rank(b) || compareIds(a, b)
export const byDueTime = (a: Entry, b: Entry): number => a.dueAt - b.dueAt || compareIds(a, b)
export const byFinish = (a: Entry, b: Entry): number => endOf(a).at - endOf(b).at || compareIds(a, b)

export function compareIds(a: Entry, b: Entry): number {
  return a.job.id < b.job.id ? -1 : a.job.id > b.job.id ? 1 : 0
}
