/**
 * Scans behind lists and bulk changes, in order of id. A filter whose states have few jobs looks at exactly those; any
 * other looks at the jobs behind the cursor, up to a bound, and says where to continue.
 */
import type { JobId } from '../../../job/ids.ts'
import type { JobRecord } from '../../../job/record.ts'
import { JOB_STATES, type JobState } from '../../../job/states.ts'
import { checkCursor } from '../../cursor.ts'
import { groupOf, mergeGroups } from '../../dead-groups.ts'
import { matches } from '../../job-filter.ts'
import type { DeadGroupPage, JobFilter, JobPage, ListQuery } from '../../store.ts'
import { checkJob, damaged } from './damage.ts'
import type { Engine } from './engine.ts'
import { Places } from './places.ts'
import type { JobRow } from './rows.ts'

export interface ScanRequest {
  readonly filter: JobFilter
  readonly order: 'up' | 'down'
  readonly after: JobId | null
  readonly limit: number
}

export interface Found {
  readonly row: JobRow
  readonly record: JobRecord
}

export interface Scanned {
  readonly found: readonly Found[]
  readonly next: JobId | null
  readonly looked: number
}

/** Maximum number of jobs that one call looks at: everything else waits meanwhile. */
const MAX_LOOK = 10_000
/** Jobs read at a time: each can be 256 KB. */
const CHUNK = 50
/** A page ends here, although there may be room for more jobs: it is in the memory of two threads at once. */
const MAX_PAGE_CHARS = 8 * 2 ** 20

export function list(engine: Engine, { limit, after, ...filter }: ListQuery, maxLook?: number): JobPage {
  const { found, ...page } = scan(engine, { filter, order: 'down', after, limit }, maxLook)
  return { jobs: found.map(({ record }) => record), ...page }
}

export function deadGroups(
  engine: Engine,
  filter: JobFilter,
  limit: number,
  after: JobId | null,
  maxLook?: number,
): DeadGroupPage {
  if (filter.states?.includes('dead') === false) return { groups: [], next: null, looked: 0 }
  const dead: JobFilter = { ...filter, states: ['dead'] }
  const { found, ...page } = scan(engine, { filter: dead, order: 'up', after, limit }, maxLook)
  return { groups: mergeGroups(found.flatMap(({ record }) => groupOf(record))), ...page }
}

/** The first `limit` jobs behind the cursor that match. */
export function scan(
  engine: Engine,
  request: ScanRequest,
  maxLook = MAX_LOOK,
  places = new Places(engine),
): Scanned {
  const { filter, limit } = request
  const found: Found[] = []
  let looked = 0
  let chars = 0
  let last: JobId | null = null
  for (const row of rowsOf(engine, places, request, maxLook)) {
    if (looked === maxLook || chars > MAX_PAGE_CHARS) return { found, next: last, looked }
    looked++
    const record = mayMatch(row, filter) ? places.record(row) : null
    if (record !== null && matches(record, filter)) {
      // One more than wanted is there: the page is full.
      if (found.length === limit) return { found, next: found.at(-1)?.row.id ?? null, looked }
      found.push({ row, record })
      chars += row.payload.length
    }
    last = row.id
  }
  return { found, next: null, looked }
}

/** By the columns of the job alone. */
function mayMatch({ queue, name }: JobRow, { queues, names }: JobFilter): boolean {
  return (queues === undefined || queues.includes(queue)) && (names === undefined || names.includes(name))
}

/** Above every id, and below all of them. */
const END = 'g'
const START = ''

/** All jobs behind the cursor that can match, in order. */
function* rowsOf(engine: Engine, places: Places, request: ScanRequest, maxLook: number): Iterable<JobRow> {
  const { filter, order, after } = request
  checkCursor(after)
  const isUp = order === 'up'
  const prefix = filter.idPrefix ?? ''
  let low = prefix === '' ? START : predecessor(prefix)
  let high = prefix + END
  if (after !== null && isUp && after > low) low = after
  if (after !== null && !isUp && after < high) high = after
  const few = fewJobs(engine, places, filter, maxLook)
  if (few !== null) {
    const behind = few.filter(([id]) => id > low && id < high)
    for (const job of behind.sort(([a], [b]) => (a < b === isUp ? -1 : 1))) yield* bodyOf(engine, job)
    return
  }
  for (;;) {
    const rows = engine.db.all<JobRow>(isUp ? 'scanUp' : 'scanDown', low, high, CHUNK)
    for (const row of rows) {
      const isInOrder = isUp ? row.id > low : row.id < high
      if (!isInOrder) throw damaged(`job ${row.seq} is out of order in the index`)
      if (isUp) low = row.id
      else high = row.id
      yield checkJob(row)
    }
    if (rows.length < CHUNK) return
  }
}

/** A text directly below all that begin with a prefix. */
function predecessor(prefix: string): string {
  const last = prefix.charCodeAt(prefix.length - 1)
  return `${prefix.slice(0, -1)}${String.fromCharCode(last - 1)}\uffff`
}

/** `seq`: null if only the id is known, which may be nobody's. */
type Listed = readonly [id: JobId, seq: number | null]

function bodyOf(engine: Engine, [id, seq]: Listed): JobRow[] {
  if (seq === null) return [engine.job(id) ?? []].flat()
  const row = engine.jobAt(seq)
  if (row.id !== id) throw damaged(`job ${seq} is listed under the id of another`)
  return [row]
}

/** The jobs of a filter that names ids, or states of which there are few; null for any other. Bodies can be large. */
function fewJobs(
  engine: Engine,
  places: Places,
  { ids, states }: JobFilter,
  maxLook: number,
): Listed[] | null {
  if (ids !== undefined) return [...new Set(ids)].map((id) => [id, null])
  if (states === undefined) return null
  const wanted = JOB_STATES.filter((state) => state !== 'blocked' && states.includes(state))
  if (countIn(engine, wanted) > maxLook) return null
  return wanted.flatMap((state) => jobsIn(engine, places, state)).map(known)
}

type FoundJob = readonly [id: JobId | null, seq: number]

function known([id, seq]: FoundJob): Listed {
  if (id === null) throw damaged(`job ${seq} is listed, and there is no such job`)
  return [id, seq]
}

type Counts = Readonly<Record<Exclude<JobState, 'blocked'>, number>>

function countIn(engine: Engine, states: readonly JobState[]): number {
  const queues = engine.db.all<Counts>('queues')
  return queues.reduce(
    (sum, counts) => states.reduce((part, state) => part + (state === 'blocked' ? 0 : counts[state]), sum),
    0,
  )
}

function jobsIn({ db }: Engine, places: Places, state: JobState): readonly FoundJob[] {
  switch (state) {
    case 'ready':
      return db.rows<FoundJob>('idsReady')
    case 'scheduled':
      return db.rows<FoundJob>('idsScheduled')
    case 'running':
      return places.allRunning().map((seq) => db.rows<FoundJob>('idBySeq', seq)[0] ?? [null, seq])
    case 'blocked':
      return []
    case 'completed':
    case 'dead':
    case 'cancelled':
      return db.rows<FoundJob>('idsEnded', state)
  }
}
