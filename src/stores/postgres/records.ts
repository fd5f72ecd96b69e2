/** Rows of the views job and packed_job as the records that people and handles see. */
import type { AttemptError } from '../../job/failure.ts'
import type { Token, WorkerId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import type { JobState } from '../../job/states.ts'
import { brokenAnswer, parseAnswer } from '../broken-answer.ts'
import { unpackFacts, type Facts, type Past } from './packed-jobs.ts'

export interface RecordRow {
  readonly state: JobState
  readonly queue: string
  readonly due_at: number
  readonly created_at: number
  readonly attempt: number
  readonly crashes: number
  /** JSON text. */
  readonly facts: string
  readonly payload: string | null
  /** From the table payload. */
  readonly large_payload: string | null
  readonly unique_key: string | null
  readonly past: Past | null
  readonly token: Token | null
  readonly worker: WorkerId | null
  readonly claimed_at: number | null
  readonly cancel_requested: boolean | null
  readonly finished_at: number | null
  readonly run_ms: number | null
  readonly result: string | null
  readonly result_dropped: boolean | null
  readonly reason: string | null
  readonly error: AttemptError | null
}

export function recordOf(row: RecordRow): JobRecord {
  const { state, past } = row
  const facts = {
    ...unpackFacts(parseAnswer<Facts>('postgres', row.facts)),
    queue: row.queue,
    payload: there(row.payload ?? row.large_payload),
    attempt: row.attempt,
    crashes: row.crashes,
    createdAt: row.created_at,
    dueAt: row.due_at,
    uniqueKey: row.unique_key,
    error: row.error ?? past?.error ?? null,
    attempts: past?.attempts ?? [],
    log: past?.log ?? [],
    progress: past?.progress ?? null,
  }
  switch (state) {
    case 'scheduled':
    case 'blocked':
    case 'ready':
      return { ...facts, state }
    case 'running':
      return {
        ...facts,
        state,
        worker: there(row.worker),
        token: there(row.token),
        claimedAt: there(row.claimed_at),
        cancelRequested: there(row.cancel_requested),
      }
    case 'completed':
      return {
        ...facts,
        state,
        finishedAt: there(row.finished_at),
        result: row.result,
        resultDropped: there(row.result_dropped),
        runMs: there(row.run_ms),
        worker: there(row.worker),
      }
    case 'dead':
      return { ...facts, state, finishedAt: there(row.finished_at), error: there(row.error) }
    case 'cancelled':
      return { ...facts, state, finishedAt: there(row.finished_at), reason: row.reason }
  }
}

function there<T>(value: T | null): T {
  if (value === null) throw brokenAnswer('postgres', 'a job lacks a column that its state always has')
  return value
}
