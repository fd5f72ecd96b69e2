/**
 * A job's body: all that never changes while the job lives, as the JSON that the tables hold. The layout is described in
 * migrations/0001_tables.sql; SQL reads it by index, so entries are only ever added at the end.
 */
import type { JobId } from '../../job/ids.ts'
import type { AttemptRecord, ClaimedJob, JobLogLine, NewJob, Progress } from '../../job/record.ts'
import type { AttemptError } from '../../job/failure.ts'
import type { UniqueClaim } from '../../job/unique.ts'
import { packOptions, unpackOptions, type PackedOptions } from '../job-options.ts'
import { MAX_ATTEMPT_RECORDS } from '../store.ts'

/** Beyond this many bytes a payload stands in a table of its own, so that claims and settles need not copy it. */
const LONG_BYTES = 2_048

type Body = readonly [
  id: JobId,
  name: string,
  payload: string | null,
  priority: number,
  headStartMs: number,
  maxAttempts: number,
  maxCrashes: number,
  uniqueKey: string | null,
  uniqueHold: number | null,
  options: PackedOptions | null,
]

/** What happened to a job so far. */
export interface Past {
  readonly error?: AttemptError
  readonly attempts?: readonly AttemptRecord[]
  readonly log?: readonly JobLogLine[]
  readonly progress?: Progress | null
}

/** A job as leases, dead letters and history hold it. */
export type PackedJob = readonly [
  dueAt: number,
  body: Body,
  attempt?: number,
  crashes?: number,
  createdAt?: number,
  past?: Past | null,
]

const WHILE_READY = -1
const WHILE_UNFINISHED = 0

export function isLong(payload: string): boolean {
  // A character takes three bytes at most: most payloads need not be counted.
  return payload.length * 3 > LONG_BYTES && Buffer.byteLength(payload) > LONG_BYTES
}

export function bodyOf(job: NewJob, long: boolean): string {
  const { id, name, payload, priority, headStartMs, maxAttempts, maxCrashes, unique } = job
  const body: Body = [
    id,
    name,
    long ? null : payload,
    priority,
    Math.round(headStartMs),
    maxAttempts,
    maxCrashes,
    unique === null ? null : unique.key,
    unique === null ? null : holdNumber(unique.hold),
    packOptions(job),
  ]
  return JSON.stringify(body)
}

function holdNumber(hold: UniqueClaim['hold']): number {
  if ('forMs' in hold) return hold.forMs
  return hold.while === 'ready' ? WHILE_READY : WHILE_UNFINISHED
}

/** `longPayload` is needed only where the body lacks its payload. */
export function unpack(packed: PackedJob, queue: string, longPayload: string | undefined): ClaimedJob {
  const [dueAt, body, attempt = 1, crashes = 0, createdAt = dueAt] = packed
  const [id, name, payload, priority, headStartMs, maxAttempts, maxCrashes, , , options] = body
  const { group, limits, envelope } = unpackOptions(options)
  return {
    id,
    name,
    queue,
    payload: payload ?? missing(id, longPayload),
    priority,
    headStartMs,
    maxAttempts,
    maxCrashes,
    group,
    limits,
    envelope,
    attempt,
    crashes,
    createdAt,
    dueAt,
  }
}

function missing(id: JobId, longPayload: string | undefined): string {
  if (longPayload === undefined) throw new Error(`The payload of job ${id} is nowhere.`)
  return longPayload
}

/** Whether its payload stands in a table of its own. */
export function lacksPayload([, body]: PackedJob): boolean {
  return body[2] === null
}

export function uniqueKeyOf([, body]: PackedJob): string | null {
  return body[7]
}

export function pastOf(packed: PackedJob): Past {
  return packed[5] ?? {}
}

/** As holdfast.with_record takes it. */
export function packRecord(record: AttemptRecord, keep = MAX_ATTEMPT_RECORDS): string {
  return JSON.stringify([Math.max(0, Math.min(keep, MAX_ATTEMPT_RECORDS)), record])
}
