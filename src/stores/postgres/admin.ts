/** Administration in SQL. */
import type { JobId } from '../../job/ids.ts'
import { isUuid } from '../../std/ids.ts'
import { checkCursor } from '../cursor.ts'
import { groupOf, mergeGroups } from '../dead-groups.ts'
import type {
  Admin,
  BulkAction,
  ChangeAnswer,
  DeadGroup,
  DeadGroupPage,
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
      await executor.query(statements.setPaused, [queue, paused])
    },
    async cancel(id, reason) {
      if (!isUuid(id)) return 'missing'
      type Outcome = Awaited<ReturnType<Admin['cancel']>>
      const [row] = await executor.query<{ outcome: Outcome }>(statements.cancel, [id, reason])
      return row?.outcome ?? 'missing'
    },
    async change(filter, action, limit, after): Promise<ChangeAnswer> {
      const { rows, next, looked } = await scan(parts, filter, { limit, after, newestFirst: false })
      if (rows.length === 0) return { changed: 0, skipped: 0, next, looked }
      const ids = uuidArray(rows.map(({ id }) => id))
      const [row] = await executor.query<{ changed: number }>(statements.change, [
        ids,
        filter.states === undefined ? null : textArray(filter.states),
        ...actionValues(action),
      ])
      const changed = row?.changed ?? 0
      return { changed, skipped: rows.length - changed, next, looked }
    },
    async edit(id, edit) {
      if (!isUuid(id)) return 'missing'
      type Outcome = Awaited<ReturnType<Admin['edit']>>
      const [row] = await executor.query<{ outcome: Outcome }>(statements.edit, [id, ...editValues(edit)])
      return row?.outcome ?? 'missing'
    },
    deadGroups: (filter, limit, after) => deadGroups(parts, filter, limit, after),
  }
}

interface DeadGroupRow {
  readonly looked: number
  readonly unread: JobId | null
  readonly dead_group: DeadGroup | null
}

/** Dead letters that one call of deadGroups looks at. */
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

/** As holdfast.change takes them: the action, the reason and the payload. */
function actionValues(action: BulkAction): SqlValue[] {
  const reason = action.type === 'cancel' ? action.reason : null
  const payload = action.type === 'replay' ? (action.payload ?? null) : null
  return [action.type, reason, payload]
}

/** As holdfast.edit takes them. */
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
