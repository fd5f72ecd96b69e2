/**
 * A job's body: all that never changes while the job lives, as the JSON that the tables hold. The layout is described in
 * migrations/0001_tables.sql; SQL reads it by index, so entries are only ever added at the end.
 */
import type { JobId } from '../../job/ids.ts'
import type { ClaimedJob, Envelope, NewJob } from '../../job/record.ts'
import type { AttemptError } from '../../job/failure.ts'
import type { JobLogLine, Progress } from '../../job/record.ts'
import type { UniqueClaim } from '../../job/unique.ts'

/** Beyond this many bytes a payload stands in a table of its own, so that claims and settles need not copy it. */
const LONG_BYTES = 2_048

interface Options {
  readonly group: string | null
  readonly limits: readonly string[]
  readonly envelope: Envelope
}

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
  options: Options | null,
]

/** What happened to a job so far. */
export interface Past {
  readonly error?: AttemptError
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
    optionsOf(job),
  ]
  return JSON.stringify(body)
}

function holdNumber(hold: UniqueClaim['hold']): number {
  if ('forMs' in hold) return hold.forMs
  return hold.while === 'ready' ? WHILE_READY : WHILE_UNFINISHED
}

function optionsOf({ group, limits, envelope }: NewJob): Options | null {
  const { correlationId, tags, metadata, retry, timeoutMs } = envelope
  const plain =
    group === null &&
    limits.length === 0 &&
    correlationId === null &&
    tags.length === 0 &&
    retry === null &&
    timeoutMs === null &&
    Object.keys(metadata).length === 0
  return plain ? null : { group, limits, envelope }
}

const NO_ENVELOPE: Envelope = { correlationId: null, tags: [], metadata: {}, retry: null, timeoutMs: null }
const NO_LIMITS: readonly string[] = []

/** `longPayload` is needed only where the body lacks its payload. */
export function unpack(packed: PackedJob, queue: string, longPayload: string | undefined): ClaimedJob {
  const [dueAt, body, attempt = 1, crashes = 0, createdAt = dueAt] = packed
  const [id, name, payload, priority, headStartMs, maxAttempts, maxCrashes, , , options] = body
  return {
    id,
    name,
    queue,
    payload: payload ?? missing(id, longPayload),
    priority,
    headStartMs,
    maxAttempts,
    maxCrashes,
    group: options === null ? null : options.group,
    limits: options === null ? NO_LIMITS : options.limits,
    envelope: options === null ? NO_ENVELOPE : options.envelope,
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
