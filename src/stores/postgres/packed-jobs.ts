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
  return `[${JSON.stringify(job.id)}${factsBehindId(job)}`
}

/** What the facts of a job are made of, but for its id. */
type Alike = Omit<NewJob, 'id' | 'queue' | 'payload' | 'due' | 'unique'>

let last: { readonly job: Alike; readonly text: string } | undefined

/** Jobs that are enqueued together mostly differ by their ids alone: their facts are written once. */
function factsBehindId(job: NewJob): string {
  if (last !== undefined && isAlike(last.job, job)) return last.text
  const { name, priority, headStartMs, maxAttempts, maxCrashes, group, limits, envelope } = job
  const facts = [name, priority, Math.round(headStartMs), maxAttempts, maxCrashes, packOptions(job)]
  const text = `,${JSON.stringify(facts).slice(1)}`
  // Not the job itself, which would keep its payload.
  last = { job: { name, priority, headStartMs, maxAttempts, maxCrashes, group, limits, envelope }, text }
  return text
}

function isAlike(a: Alike, b: Alike): boolean {
  return (
    a.envelope === b.envelope &&
    a.name === b.name &&
    a.priority === b.priority &&
    a.headStartMs === b.headStartMs &&
    a.maxAttempts === b.maxAttempts &&
    a.maxCrashes === b.maxCrashes &&
    a.group === b.group &&
    a.limits === b.limits
  )
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
