/** Rows as they are stored, and what the contract makes of them. */
import type { AttemptError } from '../../../job/failure.ts'
import type { JobId, Token, WorkerId } from '../../../job/ids.ts'
import type {
  AttemptRecord,
  ClaimedJob,
  JobLogLine,
  JobRecord,
  NewJob,
  Progress,
} from '../../../job/record.ts'
import type { FinalState } from '../../../job/states.ts'
import type { UniqueClaim } from '../../../job/unique.ts'
import { packOptions, unpackOptions, type PackedOptions } from '../../job-options.ts'
import type { SqlValue } from '../driver.ts'
import { checkPast, damaged, parseStored, sumOfJob, sumOfPast } from './damage.ts'

export interface JobRow {
  readonly seq: number
  readonly id: JobId
  readonly name: string
  readonly queue: string
  readonly priority: number
  readonly head: number
  readonly due: number
  readonly created: number
  readonly attempt: number
  readonly max_attempts: number
  readonly crashes: number
  readonly max_crashes: number
  readonly unique_key: string | null
  readonly key_while: 'ready' | 'unfinished' | null
  readonly key_ms: number | null
  readonly sum: number
  readonly options: string | null
  readonly payload: string
}

/** A row of the statement readyBodies. */
export type JobValues = readonly [
  seq: number,
  id: JobId,
  name: string,
  queue: string,
  priority: number,
  head: number,
  due: number,
  created: number,
  attempt: number,
  maxAttempts: number,
  crashes: number,
  maxCrashes: number,
  uniqueKey: string | null,
  keyWhile: JobRow['key_while'],
  keyMs: number | null,
  sum: number,
  options: string | null,
  payload: string,
]

export function readJobRow(values: JobValues): JobRow {
  const [seq, id, name, queue, priority, head, due, created, attempt, max_attempts] = values
  return {
    seq,
    id,
    name,
    queue,
    priority,
    head,
    due,
    created,
    attempt,
    max_attempts,
    crashes: values[10],
    max_crashes: values[11],
    unique_key: values[12],
    key_while: values[13],
    key_ms: values[14],
    sum: values[15],
    options: values[16],
    payload: values[17],
  }
}

export interface LeaseRow {
  readonly token: Token
  readonly worker: WorkerId
  readonly queue: string
  readonly claimed_at: number
  readonly size: number
  readonly open: number
  readonly done: string | null
  readonly keyed: number
}

export interface EndedRow {
  readonly state: FinalState
  readonly finished: number
  readonly token: Token | null
  readonly worker: WorkerId | null
  readonly run_ms: number | null
  readonly result: string | null
  readonly dropped: number
  readonly reason: string | null
  readonly sum: number
}

export interface WorkerRow {
  readonly id: WorkerId
  readonly lease_ms: number
  readonly expires_at: number
  readonly at_once: number | null
  readonly nth: number
  readonly process: string | null
}

/** What a job went through. */
export interface Past {
  readonly error: AttemptError | null
  readonly attempts: readonly AttemptRecord[]
  readonly log: readonly JobLogLine[]
  readonly progress: Progress | null
}

export interface PastRow {
  readonly error: string | null
  readonly fingerprint: string | null
  readonly attempts: string | null
  readonly log: string | null
  readonly progress: string | null
  readonly sum: number
}

export const NO_PAST: Past = { error: null, attempts: [], log: [], progress: null }

export function readPast(seq: number, row: PastRow | undefined): Past {
  if (row === undefined) return NO_PAST
  const { error, attempts, log, progress } = checkPast(seq, row)
  return {
    error: error === null ? null : parseStored<AttemptError>(error),
    attempts: attempts === null ? [] : parseStored<AttemptRecord[]>(attempts),
    log: log === null ? [] : parseStored<JobLogLine[]>(log),
    progress: progress === null ? null : parseStored<Progress>(progress),
  }
}

/** As the statement writePast takes it. */
export function pastValues(seq: number, { error, attempts, log, progress }: Past): SqlValue[] {
  const row = {
    error: error === null ? null : JSON.stringify(error),
    fingerprint: error === null ? null : error.fingerprint,
    attempts: attempts.length === 0 ? null : JSON.stringify(attempts),
    log: log.length === 0 ? null : JSON.stringify(log),
    progress: progress === null ? null : JSON.stringify(progress),
  }
  return [seq, row.error, row.fingerprint, row.attempts, row.log, row.progress, sumOfPast(seq, row)]
}

/** Null if the job has no key: then all three columns are. */
export function uniqueOf({ unique_key: key, key_while: rule, key_ms: forMs }: JobRow): UniqueClaim | null {
  if (key === null) return null
  return { key, hold: rule === null ? { forMs: forMs ?? 0 } : { while: rule }, onConflict: 'ignore' }
}

/** What is written of a new job, and again if another replaces it. */
export type JobColumns = Omit<JobRow, 'seq' | 'id' | 'created' | 'sum'>

export function jobColumns(job: NewJob, due: number): JobColumns {
  const { name, queue, priority, headStartMs, maxAttempts, maxCrashes, payload } = job
  const options = packOptions(job)
  return {
    name,
    queue,
    priority,
    head: Math.round(headStartMs),
    due,
    attempt: 0,
    max_attempts: maxAttempts,
    crashes: 0,
    max_crashes: maxCrashes,
    ...keyColumns(job.unique),
    options: options === null ? null : JSON.stringify(options),
    payload,
  }
}

function keyColumns(unique: UniqueClaim | null): Pick<JobRow, 'unique_key' | 'key_while' | 'key_ms'> {
  if (unique === null) return { unique_key: null, key_while: null, key_ms: null }
  const { key, hold } = unique
  return 'forMs' in hold
    ? { unique_key: key, key_while: null, key_ms: Math.round(hold.forMs) }
    : { unique_key: key, key_while: hold.while, key_ms: null }
}

/** In the order of the statements insertJob and rewriteJob. */
export function jobValues(job: Omit<JobRow, 'seq' | 'sum'>): SqlValue[] {
  return [
    job.name,
    job.queue,
    job.priority,
    job.head,
    job.due,
    job.attempt,
    job.max_attempts,
    job.crashes,
    job.max_crashes,
    job.unique_key,
    job.key_while,
    job.key_ms,
    sumOfJob(job),
    job.options,
    job.payload,
  ]
}

/** `claims`: 1 if the job is or was under a lease that its column `attempt` does not count. */
export function claimedJob(row: JobRow, claims: 0 | 1): ClaimedJob {
  const { group, limits, envelope } = unpackOptions(
    row.options === null ? null : parseStored<PackedOptions>(row.options),
  )
  return {
    id: row.id,
    name: row.name,
    queue: row.queue,
    payload: row.payload,
    priority: row.priority,
    headStartMs: row.head,
    maxAttempts: row.max_attempts,
    maxCrashes: row.max_crashes,
    group,
    limits,
    envelope,
    attempt: row.attempt + claims,
    crashes: row.crashes,
    createdAt: row.created,
    dueAt: row.due,
  }
}

/** Where a job is. */
export type Place =
  | { readonly state: 'ready' | 'scheduled' }
  | {
      readonly state: 'running'
      readonly lease: LeaseRow
      readonly position: number
      readonly cancelled: boolean
    }
  | { readonly state: 'ended'; readonly end: EndedRow }

export function recordOf(row: JobRow, place: Place, past: Past): JobRecord {
  const claims = place.state === 'running' || (place.state === 'ended' && place.end.token !== null) ? 1 : 0
  const facts = { ...claimedJob(row, claims), uniqueKey: row.unique_key, ...past }
  if (place.state === 'ended') return finishedRecord(facts, place.end)
  if (place.state !== 'running') return { ...facts, state: place.state }
  const { worker, token, claimed_at: claimedAt } = place.lease
  return { ...facts, state: 'running', worker, token, claimedAt, cancelRequested: place.cancelled }
}

type StoredFacts = ClaimedJob & Past & { readonly uniqueKey: string | null }

function finishedRecord(facts: StoredFacts, end: EndedRow): JobRecord {
  const { finished: finishedAt, worker, run_ms: runMs, result, dropped, reason } = end
  switch (end.state) {
    case 'completed':
      if (worker === null || runMs === null) throw damaged(`job ${facts.id} is completed without a worker`)
      return { ...facts, state: 'completed', finishedAt, result, resultDropped: dropped === 1, runMs, worker }
    case 'dead': {
      const { error } = facts
      if (error === null) throw damaged(`job ${facts.id} is dead without an error`)
      return { ...facts, state: 'dead', finishedAt, error }
    }
    case 'cancelled':
      return { ...facts, state: 'cancelled', finishedAt, reason }
  }
}
