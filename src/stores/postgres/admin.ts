/** Administration in SQL. */
import type { JobId } from '../../job/ids.ts'
import type { Admin, BulkAction, ChangeAnswer, DeadGroup, JobEdit, JobFilter, QueueStatus } from '../store.ts'
import type { Executor, SqlValue } from './executor.ts'
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
  readonly oldest: number | null
}

interface DeadGroupRow extends Omit<DeadGroup, 'firstAt' | 'lastAt'> {
  readonly first_at: number
  readonly last_at: number
  /** Of the page, the same in each row. */
  readonly next: JobId | null
}

export function sqlAdmin(executor: Executor, statements: Statements): Admin {
  return {
    async get(id) {
      if (!UUID.test(id)) return null
      const [row] = await executor.query<RecordRow>(statements.get, [id])
      return row === undefined ? null : recordOf(row)
    },
    async list(query) {
      const values = [...filterValues(query), query.after, query.limit + 1]
      const rows = await executor.query<RecordRow>(statements.list, values)
      const jobs = rows.slice(0, query.limit).map(recordOf)
      return { jobs, next: rows.length > query.limit ? (jobs.at(-1)?.id ?? null) : null }
    },
    async queues() {
      return (await executor.query<QueueRow>(statements.queues, [])).map(statusOf)
    },
    async setPaused(queue, paused) {
      await executor.query(statements.setPaused, [queue, paused])
    },
    async cancel(id, reason) {
      if (!UUID.test(id)) return 'missing'
      type Outcome = Awaited<ReturnType<Admin['cancel']>>
      const [row] = await executor.query<{ outcome: Outcome }>(statements.cancel, [id, reason])
      return row?.outcome ?? 'missing'
    },
    change: (filter, action, limit, after) =>
      executor.transaction(async (tx): Promise<ChangeAnswer> => {
        const values = [...filterValues(filter), after, limit + 1]
        const picked = await tx.query<{ id: JobId }>(statements.pick, values)
        const ids = picked.slice(0, limit).map(({ id }) => id)
        const [row] = await tx.query<{ changed: number }>(statements.change, [
          uuidArray(ids),
          ...actionValues(action),
        ])
        const changed = row?.changed ?? 0
        const next = picked.length > limit ? (ids.at(-1) ?? null) : null
        return { changed, skipped: ids.length - changed, next }
      }),
    async edit(id, edit) {
      if (!UUID.test(id)) return 'missing'
      type Outcome = Awaited<ReturnType<Admin['edit']>>
      const [row] = await executor.query<{ outcome: Outcome }>(statements.edit, [id, ...editValues(edit)])
      return row?.outcome ?? 'missing'
    },
    async deadGroups(filter, limit, after) {
      const values = [...filterValues(filter), after, limit]
      const rows = await executor.query<DeadGroupRow>(statements.deadGroups, values)
      return { groups: rows.map(groupOf), next: rows[0]?.next ?? null }
    },
  }
}

/** What is no uuid is no job's id, and the database would call it an error. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

function filterValues(filter: JobFilter): SqlValue[] {
  const { ids, states, queues, names, fingerprints, finishedFrom, finishedBefore } = filter
  const list = (values: readonly string[] | undefined): string | null =>
    values === undefined ? null : textArray(values)
  const uuids = ids === undefined ? null : uuidArray(ids.filter((id) => UUID.test(id)))
  // Upwards: of whole milliseconds both bounds take and leave the same ones.
  const time = (ms: number | undefined): number | null => (ms === undefined ? null : Math.ceil(ms))
  return [
    uuids,
    list(states),
    list(queues),
    list(names),
    list(fingerprints),
    time(finishedFrom),
    time(finishedBefore),
  ]
}

/** As holdfast.change takes them: what to do, the reason, the payload. */
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

function groupOf(row: DeadGroupRow): DeadGroup {
  const { queue, name, fingerprint, count, first_at: firstAt, last_at: lastAt, newest, kind, message } = row
  return { queue, name, fingerprint, count, firstAt, lastAt, newest, kind, message }
}

function statusOf(row: QueueRow): QueueStatus {
  const { queue, paused, scheduled, ready, running, completed, dead, cancelled, oldest } = row
  const counts = { scheduled, blocked: 0, ready, running, completed, dead, cancelled }
  return { queue, paused, counts, oldestReadyAt: oldest }
}
