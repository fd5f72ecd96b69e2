/** A job as this store holds it, and as callers see it. */
import {
  isFinal,
  isWaiting,
  MAX_ATTEMPT_RECORDS,
  rankOf,
  type AttemptError,
  type AttemptRecord,
  type ClaimedJob,
  type JobLogLine,
  type JobRecord,
  type NewJob,
  type Progress,
  type StoredState,
  type Token,
  type WorkerId,
} from 'holdfast/store'

export interface LeaseRow {
  readonly token: Token
  readonly worker: WorkerId
  readonly claimedAt: number
  /** By position; null once settled. */
  readonly open: (Row | null)[]
}

export interface Row {
  job: NewJob
  state: StoredState
  attempt: number
  crashes: number
  readonly createdAt: number
  dueAt: number
  error: AttemptError | null
  attempts: readonly AttemptRecord[]
  progress: Progress | null
  log: readonly JobLogLine[]
  /** While it runs. */
  lease: LeaseRow | null
  position: number
  cancel: { readonly reason: string | null; readonly heard: boolean } | null
  /** Once it is final. */
  end: Ending | null
}

export interface Ending {
  readonly at: number
  readonly result: string | null
  readonly resultDropped: boolean
  readonly runMs: number
  readonly reason: string | null
  readonly worker: WorkerId | null
}

export function newRow(job: NewJob, now: number, dueAt: number): Row {
  const state = dueAt > now ? 'scheduled' : 'ready'
  const facts = { job, state, createdAt: now, dueAt } as const
  return { ...facts, ...untried(), lease: null, position: 0, cancel: null, end: null }
}

/** What a job has before its first attempt. */
export function untried(): Pick<Row, 'attempt' | 'crashes' | 'error' | 'attempts' | 'progress' | 'log'> {
  return { attempt: 0, crashes: 0, error: null, attempts: [], progress: null, log: [] }
}

export function rank({ dueAt, job }: Row): number {
  return rankOf(dueAt, job.headStartMs)
}

export function byRank(a: Row, b: Row): number {
  return rank(a) - rank(b) || byId(a, b)
}

export function byId(a: Row, b: Row): number {
  return a.job.id < b.job.id ? -1 : 1
}

/** Whether a job in this state still holds its unique key. */
export function holdsKey({ job: { unique }, state }: Row): boolean {
  if (unique === null) return false
  if ('forMs' in unique.hold) return true
  return unique.hold.while === 'ready' ? isWaiting(state) : !isFinal(state)
}

/** The newest records stay. */
export function addRecord(row: Row, record: AttemptRecord, keep = MAX_ATTEMPT_RECORDS): void {
  const kept = Math.min(keep, MAX_ATTEMPT_RECORDS)
  row.attempts = kept > 0 ? [...row.attempts, record].slice(-kept) : []
}

export function claimedJob(row: Row): ClaimedJob {
  const { due: _due, unique: _unique, ...facts } = row.job
  const { attempt, crashes, createdAt, dueAt } = row
  return { ...facts, attempt, crashes, createdAt, dueAt }
}

export function recordOf(row: Row): JobRecord {
  const { error, attempts, log, progress, end, lease } = row
  const uniqueKey = row.job.unique?.key ?? null
  const facts = { ...claimedJob(row), uniqueKey, error, attempts, log, progress }
  switch (row.state) {
    case 'scheduled':
    case 'ready':
      return { ...facts, state: row.state }
    case 'running': {
      const { worker, token, claimedAt } = present(lease)
      return { ...facts, state: 'running', worker, token, claimedAt, cancelRequested: row.cancel !== null }
    }
    case 'completed': {
      const { at: finishedAt, result, resultDropped, runMs, worker } = present(end)
      return {
        ...facts,
        state: 'completed',
        finishedAt,
        result,
        resultDropped,
        runMs,
        worker: present(worker),
      }
    }
    case 'dead':
      return { ...facts, state: 'dead', finishedAt: present(end).at, error: present(error) }
    case 'cancelled':
      return { ...facts, state: 'cancelled', finishedAt: present(end).at, reason: present(end).reason }
  }
}

function present<T>(value: T | null): T {
  if (value === null) throw new Error('A job lacks what its state always has.')
  return value
}
