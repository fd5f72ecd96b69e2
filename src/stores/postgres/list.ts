/**
 * Lists that page. One statement looks at a bounded number of jobs, so a page takes several: a small one first, which is
 * enough unless a filter is rare, then one for the rest of a budget for the whole call. Pages go by id, so a job that
 * moves to another state meanwhile is neither missed nor listed twice.
 */
import type { JobId } from '../../job/ids.ts'
import { isUuid } from '../../std/ids.ts'
import { checkCursor } from '../cursor.ts'
import { matches } from '../job-filter.ts'
import { MAX_SCAN, type JobFilter } from '../store.ts'
import type { Executor, SqlValue } from './executor.ts'
import { textArray, uuidArray } from './literals.ts'
import { recordOf, type RecordRow } from './records.ts'
import type { Statements } from './statements.ts'

export interface ScanParts {
  readonly executor: Executor
  readonly statements: Statements
}

export interface ScanRequest {
  readonly limit: number
  /** Exclusive. */
  readonly after: JobId | null
  readonly newestFirst: boolean
}

export interface FoundRow extends RecordRow {
  readonly id: JobId
}

interface Scanned {
  readonly rows: readonly FoundRow[]
  readonly next: JobId | null
  readonly looked: number
}

interface PageRow {
  readonly looked: number
  /** The first id that was not looked at; null at the end. */
  readonly unread: JobId | null
  readonly job: FoundRow | null
}

/**
 * Jobs that one call looks at. One takes 1 µs to 4 µs, the most in a small batch that a filter must unpack, and a statement
 * takes 6 ms to plan: the slowest page is at about half of 100 ms.
 */
const CALL_BUDGET = Math.min(8_000, MAX_SCAN)
const FIRST_STEP = 2_000

export async function scan(parts: ScanParts, filter: JobFilter, request: ScanRequest): Promise<Scanned> {
  const { limit, after, newestFirst } = request
  checkCursor(after)
  if (filter.ids !== undefined) return scanIds(parts, filter.ids, filter, request)
  const rows: FoundRow[] = []
  let looked = 0
  let range = rangeOf(filter, after, newestFirst)
  let step = Math.min(Math.max(4 * limit, 200), FIRST_STEP)
  while (range !== null) {
    const wanted = limit - rows.length + 1
    const page = await parts.executor.query<PageRow>(parts.statements.list, [
      ...filterValues(filter),
      range.low,
      range.high,
      newestFirst,
      wanted,
      step,
    ])
    const [first] = page
    looked += first?.looked ?? 0
    rows.push(...page.flatMap(({ job }) => (job === null ? [] : [job])))
    if (rows.length > limit) return { rows: rows.slice(0, limit), next: rows[limit - 1]?.id ?? null, looked }
    const unread = first?.unread ?? null
    if (unread === null) break
    // So many batches begin with the same id that the step ended before the second.
    const isStuck = unread === (newestFirst ? range.high : range.low)
    step = isStuck ? step * 10 : restOf(step, first?.looked ?? 0, looked)
    range = newestFirst ? { ...range, high: unread } : { ...range, low: unread }
    if (looked >= CALL_BUDGET && !isStuck)
      return { rows, next: neighbour(unread, newestFirst ? 1n : -1n), looked }
  }
  return { rows, next: null, looked }
}

/** The size of the next step. A step is for each table, and the last one shows how many tables there are to look at. */
function restOf(step: number, lookedInStep: number, looked: number): number {
  const tables = Math.max(1, Math.round(lookedInStep / step))
  return Math.max(step, Math.ceil((CALL_BUDGET - looked) / tables))
}

/**
 * Named jobs that one call looks up: each may be in a large batch of its own, which takes a millisecond to unpack. The page
 * says where to continue.
 */
const IDS_PER_CALL = 50

/** Named jobs are looked up, not searched for. */
async function scanIds(
  { executor, statements }: ScanParts,
  ids: readonly JobId[],
  filter: JobFilter,
  { limit, after, newestFirst }: ScanRequest,
): Promise<Scanned> {
  const inOrder = (a: JobId, b: JobId): number => (a < b === newestFirst ? 1 : -1)
  const isLater = (id: JobId): boolean => after === null || (newestFirst ? id < after : id > after)
  const known = ids.filter(isUuid).map((id) => id.toLowerCase() as JobId)
  const left = [...new Set(known)].filter(isLater).sort(inOrder)
  const asked = left.slice(0, IDS_PER_CALL)
  const found = await executor.query<{ job: FoundRow }>(statements.getJobs, [uuidArray(asked)])
  const rows = found
    .map(({ job }) => job)
    .filter((row) => matches(recordOf(row), filter))
    .sort((a, b) => inOrder(a.id, b.id))
  const page = rows.slice(0, limit)
  const isFull = rows.length > limit
  const next = isFull ? page.at(-1)?.id : left.length > asked.length ? asked.at(-1) : undefined
  return { rows: page, next: next ?? null, looked: found.length }
}

// ── ranges of ids ────────────────────────────────────────────────────────────

export interface IdRange {
  /** Both inclusive. */
  readonly low: JobId
  readonly high: JobId
}

const LOWEST = '00000000-0000-0000-0000-000000000000'
const HIGHEST = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** The ids that the filter and the cursor leave; null if there are none. */
export function rangeOf(
  { idPrefix = '' }: JobFilter,
  after: JobId | null,
  newestFirst: boolean,
): IdRange | null {
  if (!/^[0-9a-f-]*$/.test(idPrefix) || !HIGHEST.startsWith(idPrefix.replaceAll(/[0-9a-f]/g, 'f')))
    return null
  let low = idPrefix + LOWEST.slice(idPrefix.length)
  let high = idPrefix + HIGHEST.slice(idPrefix.length)
  const cursor = after?.toLowerCase()
  if (cursor !== undefined && newestFirst && cursor <= high) high = neighbour(cursor, -1n)
  if (cursor !== undefined && !newestFirst && cursor >= low) low = neighbour(cursor, 1n)
  if (cursor === (newestFirst ? LOWEST : HIGHEST) || low > high) return null
  return { low: low as JobId, high: high as JobId }
}

/** The id before or after this one, by its number. */
export function neighbour(id: string, step: 1n | -1n): JobId {
  const largest = (1n << 128n) - 1n
  const number = BigInt(`0x${id.replaceAll('-', '')}`) + step
  const hex = (number < 0n ? 0n : number > largest ? largest : number).toString(16).padStart(32, '0')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') as JobId
}

// ── filters ──────────────────────────────────────────────────────────────────

/** As holdfast.list_jobs takes them. */
function filterValues(filter: JobFilter): SqlValue[] {
  return [list(filter.states), ...groupFilterValues(filter)]
}

/** Without the states, as holdfast.dead_groups takes them. */
export function groupFilterValues(filter: JobFilter): SqlValue[] {
  const { queues, names, fingerprints, tags } = filter
  return [
    list(queues),
    list(names),
    list(fingerprints),
    list(tags),
    time(filter.finishedFrom),
    time(filter.finishedBefore),
    time(filter.createdFrom),
    time(filter.createdBefore),
  ]
}

function list(values: readonly string[] | undefined): string | null {
  return values === undefined ? null : textArray(values)
}

/** Upwards: of whole milliseconds both bounds take and leave the same ones. */
function time(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.ceil(ms)
}
