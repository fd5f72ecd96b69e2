/** Jobs as the tables hold them: the facts of a job, and a claimed job in a batch. See schema/functions/packed_jobs.sql. */
import type { AttemptError } from '../../job/failure.ts'
import type { JobId } from '../../job/ids.ts'
import type { AttemptRecord, ClaimedJob, JobLogLine, NewJob, Progress } from '../../job/record.ts'
import type { UniqueClaim } from '../../job/unique.ts'
import { packOptions, unpackOptions, type PackedOptions } from '../job-options.ts'
import { MAX_ATTEMPT_RECORDS } from '../store.ts'

export type Facts = readonly [
  id: JobId,
  name: string,
  priority: number,
  headStartMs: number,
  maxAttempts: number,
  maxCrashes: number,
  options: PackedOptions | null,
]

/** What happened to a job so far. */
export interface Past {
  readonly error?: AttemptError
  readonly attempts?: readonly AttemptRecord[]
  readonly log?: readonly JobLogLine[]
  readonly progress?: Progress | null
}

/** A job in the answer of a claim; the entries behind `facts` are missing if nothing has happened to it yet. */
export type PackedJob = readonly [
  dueAt: number,
  facts: Facts,
  attempt?: number,
  crashes?: number,
  createdAt?: number,
]

const WHILE_READY = -1
const WHILE_UNFINISHED = 0

export function factsOf(job: NewJob): string {
  const { id, name, priority, headStartMs, maxAttempts, maxCrashes } = job
  const facts: Facts = [
    id,
    name,
    priority,
    Math.round(headStartMs),
    maxAttempts,
    maxCrashes,
    packOptions(job),
  ]
  return JSON.stringify(facts)
}

/** As the column unique_hold has it. */
export function holdNumber(hold: UniqueClaim['hold']): number {
  if ('forMs' in hold) return Math.round(hold.forMs)
  return hold.while === 'ready' ? WHILE_READY : WHILE_UNFINISHED
}

export function unpackJob(packed: PackedJob, queue: string, payload: string): ClaimedJob {
  const [dueAt, facts, attempt = 1, crashes = 0, createdAt = dueAt] = packed
  return { ...unpackFacts(facts), queue, payload, attempt, crashes, createdAt, dueAt }
}

export function unpackFacts(
  facts: Facts,
): Omit<ClaimedJob, 'queue' | 'payload' | 'attempt' | 'crashes' | 'createdAt' | 'dueAt'> {
  const [id, name, priority, headStartMs, maxAttempts, maxCrashes, options] = facts
  const { group, limits, envelope } = unpackOptions(options)
  return { id, name, priority, headStartMs, maxAttempts, maxCrashes, group, limits, envelope }
}

/** As holdfast.with_record takes it. */
export function packRecord(record: AttemptRecord, keep = MAX_ATTEMPT_RECORDS): string {
  return JSON.stringify([Math.max(0, Math.min(keep, MAX_ATTEMPT_RECORDS)), record])
}
