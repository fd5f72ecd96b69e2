/** Administration in SQL. */
import type { JobId } from '../../job/ids.ts'
import { isUuid } from '../../std/ids.ts'
import { checkCursor } from '../cursor.ts'
import { checkChange, checkText } from '../write-check.ts'
import { groupOf, mergeGroups } from '../dead-groups.ts'
import type {
  Admin,
  ChangeAnswer,
  ChangeCounts,
  DeadGroup,
  DeadGroupPage,
  JobChange,
  JobEdit,
  JobFilter,
  QueueStatus,
} from '../store.ts'
import type { Executor, SqlValue } from './executor.ts'
import { groupFilterValues, neighbour, rangeOf, scan, type ScanParts } from './list.ts'
import { textArray, uuidArray } from './literals.ts'
import { recordOf, type RecordRow } from './records.ts'
import type { Statements } from './statements.ts'

interface QueueRow {
  readonly queue: string
  readonly paused: boolean
  readonly scheduled: number
  readonly ready: number
  readonly running: number
  readonly completed: number
  readonly dead: number
  readonly cancelled: number
  readonly oldest_ready_at: number | null
}

export function sqlAdmin(executor: Executor, statements: Statements): Admin {
  const parts: ScanParts = { executor, statements }
  return {
    async get(id) {
      if (!isUuid(id)) return null
      const [row] = await executor.query<{ job: RecordRow }>(statements.getJobs, [uuidArray([id])])
      return row === undefined ? null : recordOf(row.job)
    },
    async list({ limit, after, ...filter }) {
      const { rows, next, looked } = await scan(parts, filter, { limit, after, newestFirst: true })
      return { jobs: rows.map(recordOf), next, looked }
    },
    async queues() {
      return (await executor.query<QueueRow>(statements.queues, [])).map(statusOf)
    },
    async setPaused(queue, paused) {
      checkText('The name of a queue', queue)
      await executor.query(statements.setPaused, [queue, paused])
    },
    change: (filter, wanted, limit, after) => change(parts, { filter, limit, after }, wanted),
    deadGroups: (filter, limit, after) => deadGroups(parts, filter, limit, after),
  }
}

interface DeadGroupRow {
  readonly looked: number
  readonly unread: JobId | null
  readonly dead_group: DeadGroup | null
}

/** Maximum number of named jobs that one call changes without a search. */
const NAMED_AT_ONCE = 50
/** Maximum number of dead letters that one call of deadGroups examines. */
const GROUPS_BUDGET = 10_000

async function deadGroups(
  parts: ScanParts,
  filter: JobFilter,
  limit: number,
  after: JobId | null,
): Promise<DeadGroupPage> {
  checkCursor(after)
  if (filter.states?.includes('dead') === false) return { groups: [], next: null, looked: 0 }
  if (filter.ids !== undefined) {
    const dead = { ...filter, states: ['dead'] as const }
    const { rows, next, looked } = await scan(parts, dead, { limit, after, newestFirst: false })
    return { groups: mergeGroups(rows.flatMap((row) => groupOf(recordOf(row)))), next, looked }
  }
  const range = rangeOf(filter, after, false)
  if (range === null) return { groups: [], next: null, looked: 0 }
  const rows = await parts.executor.query<DeadGroupRow>(parts.statements.deadGroups, [
    ...groupFilterValues(filter),
    range.low,
    range.high,
    limit,
    GROUPS_BUDGET,
  ])
  const groups = rows.flatMap(({ dead_group: group }) => (group === null ? [] : [group]))
  const unread = rows[0]?.unread ?? null
  return { groups, next: unread === null ? null : neighbour(unread, -1n), looked: rows[0]?.looked ?? 0 }
}

interface ChangeRequest {
  readonly filter: JobFilter
  readonly limit: number
  readonly after: JobId | null
}

interface Chosen {
  readonly ids: readonly JobId[]
  readonly next: JobId | null
  /** Null if the jobs were not searched for: then the outcomes tell how many there are. */
  readonly looked: number | null
}

async function change(parts: ScanParts, request: ChangeRequest, wanted: JobChange): Promise<ChangeAnswer> {
  checkChange(wanted)
  const { ids, next, looked } = await choose(parts, request, wanted)
  if (ids.length === 0) return { outcomes: {}, next, looked: looked ?? 0 }
  const { states } = request.filter
  const jobs = [uuidArray(ids), states === undefined ? null : textArray(states)]
  const { statements, executor } = parts
  const [row] =
    wanted.type === 'edit'
      ? await executor.query<ChangeRow>(statements.edit, [...jobs, ...editValues(wanted)])
      : await executor.query<ChangeRow>(statements.change, [...jobs, ...changeValues(wanted)])
  const outcomes = row?.outcomes ?? {}
  const told = Object.values(outcomes).reduce((sum, count) => sum + count, 0)
  return { outcomes: withRest(outcomes, wanted, ids.length - told), next, looked: looked ?? told }
}

interface ChangeRow {
  readonly outcomes: ChangeCounts
}

/** Named jobs are not searched for if the statement tells which of them are missing. */
async function choose(
  parts: ScanParts,
  { filter, limit, after }: ChangeRequest,
  { type }: JobChange,
): Promise<Chosen> {
  const { ids, states: _states, ...rest } = filter
  const isPlain = after === null && Object.values(rest).every((part) => part === undefined)
  if (ids !== undefined && isPlain && (type === 'cancel' || type === 'edit')) {
    const named = [...new Set(ids)].filter(isUuid)
    if (named.length <= Math.min(limit, NAMED_AT_ONCE)) return { ids: named, next: null, looked: null }
  }
  const { rows, next, looked } = await scan(parts, filter, { limit, after, newestFirst: false })
  return { ids: rows.map(({ id }) => id), next, looked }
}

/** Adds the jobs that a replay or discard did not count: their state does not allow it. */
function withRest(outcomes: ChangeCounts, { type }: JobChange, rest: number): ChangeCounts {
  if (type === 'discard') return withoutZeros({ discarded: outcomes.discarded ?? 0, not_final: rest })
  return type === 'replay'
    ? withoutZeros({ ...outcomes, not_dead: (outcomes.not_dead ?? 0) + rest })
    : outcomes
}

function withoutZeros(counts: ChangeCounts): ChangeCounts {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
}

/** As holdfast.change takes them: the action, the reason and the payload. */
function changeValues(wanted: Exclude<JobChange, { readonly type: 'edit' }>): SqlValue[] {
  const reason = wanted.type === 'cancel' ? wanted.reason : null
  const payload = wanted.type === 'replay' ? (wanted.payload ?? null) : null
  return [wanted.type, reason, payload]
}

/** As holdfast.edit_all takes them. */
function editValues({ payload, rank, due }: JobEdit): SqlValue[] {
  return [
    payload ?? null,
    rank === undefined ? null : rank.priority,
    rank === undefined ? null : Math.round(rank.headStartMs),
    due !== undefined && 'inMs' in due ? Math.round(due.inMs) : null,
    due !== undefined && 'atMs' in due ? Math.round(due.atMs) : null,
  ]
}

function statusOf(row: QueueRow): QueueStatus {
  const { queue, paused, scheduled, ready, running, completed, dead, cancelled } = row
  const counts = { scheduled, blocked: 0, ready, running, completed, dead, cancelled }
  return { queue, paused, counts, oldestReadyAt: row.oldest_ready_at }
}
