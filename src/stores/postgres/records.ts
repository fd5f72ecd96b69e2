/** Rows of the view job_record as the records that people and handles see. */
import type { AttemptError } from '../../job/failure.ts'
import type { Token, WorkerId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import type { JobState } from '../../job/states.ts'
import { pastOf, uniqueKeyOf, unpack, type PackedJob, type Past } from './bodies.ts'

/** Who completed the jobs of which that was not kept yet: those that ended before migration 0009. */
const NOBODY = '00000000-0000-0000-0000-000000000000' as WorkerId

export interface RecordRow {
  readonly state: JobState
  readonly queue: string
  readonly job: PackedJob
  readonly said: Past | null
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
  readonly long_payload: string | null
}

export function recordOf(row: RecordRow): JobRecord {
  const { state, queue, job: packed, said } = row
  const past: Past = { ...pastOf(packed), ...said }
  const facts = {
    ...unpack(packed, queue, row.long_payload ?? undefined),
    uniqueKey: uniqueKeyOf(packed),
    error: row.error ?? past.error ?? null,
    attempts: past.attempts ?? [],
    log: past.log ?? [],
    progress: past.progress ?? null,
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
        worker: row.worker ?? NOBODY,
      }
    case 'dead':
      return { ...facts, state, finishedAt: there(row.finished_at), error: there(row.error) }
    case 'cancelled':
      return { ...facts, state, finishedAt: there(row.finished_at), reason: row.reason }
  }
}

function there<T>(value: T | null): T {
  if (value === null) throw new Error('A job lacks a column that its state always has.')
  return value
}
