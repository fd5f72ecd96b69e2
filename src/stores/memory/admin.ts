/** Administration in memory. Lists and bulk changes look at every job: this store is for tests and development. */
import type { JobId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import { isFinal, isWaiting } from '../../job/states.ts'
import { groupOf, mergeGroups } from '../dead-groups.ts'
import type {
  Admin,
  BulkAction,
  ChangeAnswer,
  DeadGroup,
  JobEdit,
  JobFilter,
  ListQuery,
  QueueStatus,
} from '../store.ts'
import { compareIds, recordOf, type Entry } from './entry.ts'
import type { MemoryState } from './state.ts'
import type { Guard } from './upkeep.ts'

export function memoryAdmin(state: MemoryState, step: Guard): Admin {
  return {
    get: (id) =>
      step(() => {
        const entry = state.shelves.jobs.get(id)
        return entry === undefined ? null : recordOf(entry)
      }),
    list: (query) => step(() => list(state, query)),
    queues: () => step(() => [...state.shelves.queues.keys()].sort().map((name) => statusOf(state, name))),
    setPaused: (queue, paused) =>
      step(() => {
        state.shelves.queue(queue).paused = paused
        if (!paused) state.hint({ type: 'ready', queue })
      }),
    cancel: (id, reason) =>
      step(() => {
        const entry = state.shelves.jobs.get(id)
        return entry === undefined ? 'missing' : cancel(state, entry, reason)
      }),
    change: (filter, action, limit, after) => step(() => change(state, filter, action, limit, after)),
    edit: (id, edit) =>
      step(() => {
        const entry = state.shelves.jobs.get(id)
        return entry === undefined ? 'missing' : editWaiting(state, entry, edit)
      }),
    deadGroups: (filter, limit, after) => step(() => deadGroups(state, filter, limit, after)),
  }
}

function list(state: MemoryState, query: ListQuery): { jobs: JobRecord[]; next: JobId | null } {
  const newestFirst = (a: Entry, b: Entry): number => compareIds(b, a)
  const { after } = query
  const wanted = (entry: Entry): boolean => matches(entry, query) && (after === null || entry.job.id < after)
  const page = firstOf(state.shelves.jobs.values(), wanted, newestFirst, query.limit + 1)
  const jobs = page.slice(0, query.limit)
  return { jobs: jobs.map(recordOf), next: page.length > query.limit ? (jobs.at(-1)?.job.id ?? null) : null }
}

function matches(entry: Entry, filter: JobFilter): boolean {
  const { ids, states, queues, names, fingerprints, finishedFrom, finishedBefore } = filter
  return (
    (fingerprints === undefined ||
      (entry.error !== null && fingerprints.includes(entry.error.fingerprint))) &&
    (finishedFrom === undefined || (entry.end !== null && entry.end.at >= finishedFrom)) &&
    (finishedBefore === undefined || (entry.end !== null && entry.end.at < finishedBefore)) &&
    (ids === undefined || ids.includes(entry.job.id)) &&
    (states === undefined || states.includes(entry.state)) &&
    (queues === undefined || queues.includes(entry.job.queue)) &&
    (names === undefined || names.includes(entry.job.name))
  )
}

/** The first `count` of those wanted, in order, in one pass and without sorting all of them. */
function firstOf(
  entries: Iterable<Entry>,
  wanted: (entry: Entry) => boolean,
  compare: (a: Entry, b: Entry) => number,
  count: number,
): Entry[] {
  const first: Entry[] = []
  for (const entry of entries) {
    const last = first[count - 1]
    if (!wanted(entry) || (last !== undefined && compare(last, entry) < 0)) continue
    const at = first.findIndex((other) => compare(entry, other) < 0)
    first.splice(at === -1 ? first.length : at, 0, entry)
    if (first.length > count) first.pop()
  }
  return first
}

function statusOf(state: MemoryState, queue: string): QueueStatus {
  const { paused, counts, ready, suspects } = state.shelves.queue(queue)
  let oldestReadyAt: number | null = null
  for (const shelf of [ready, suspects]) {
    for (const { dueAt } of shelf) oldestReadyAt = Math.min(oldestReadyAt ?? dueAt, dueAt)
  }
  return { queue, paused, counts: { ...counts }, oldestReadyAt }
}

function cancel(
  state: MemoryState,
  entry: Entry,
  reason: string | null,
): 'cancelled' | 'requested' | 'final' {
  if (isFinal(entry.state)) return 'final'
  if (isWaiting(entry.state)) {
    state.finish(entry, 'cancelled', { reason })
    return 'cancelled'
  }
  entry.cancel ??= { reason }
  if (entry.lease !== null) state.hint({ type: 'cancel', worker: entry.lease.worker })
  return 'requested'
}

function change(
  state: MemoryState,
  filter: JobFilter,
  action: BulkAction,
  limit: number,
  after: JobId | null,
): ChangeAnswer {
  const wanted = (entry: Entry): boolean => matches(entry, filter) && (after === null || entry.job.id > after)
  const page = firstOf(state.shelves.jobs.values(), wanted, compareIds, limit + 1)
  const chosen = page.slice(0, limit)
  const changed = chosen.filter((entry) => apply(state, entry, action)).length
  const next = page.length > limit ? (chosen.at(-1)?.job.id ?? null) : null
  return { changed, skipped: chosen.length - changed, next }
}

function apply(state: MemoryState, entry: Entry, action: BulkAction): boolean {
  switch (action.type) {
    case 'cancel':
      return cancel(state, entry, action.reason) !== 'final'
    case 'discard':
      if (!isFinal(entry.state)) return false
      state.shelves.forget(entry)
      return true
    case 'replay':
      return entry.state === 'dead' && replay(state, entry, action.payload ?? entry.job.payload)
  }
}

function replay(state: MemoryState, entry: Entry, payload: string): boolean {
  const { unique } = entry.job
  const now = state.now()
  if (unique !== null) {
    const holder = state.keys.holderOf(unique.key, now)
    if (holder !== undefined && holder !== entry.job.id) return false
    state.keys.take(unique, entry.job.id, now)
  }
  entry.attempt = 0
  entry.crashes = 0
  state.reschedule(entry, now, { ...entry.job, payload })
  entry.end = null
  return true
}

function editWaiting(state: MemoryState, entry: Entry, edit: JobEdit): 'edited' | 'running' | 'final' {
  if (isFinal(entry.state)) return 'final'
  if (!isWaiting(entry.state)) return 'running'
  const { payload = entry.job.payload, rank = {}, due } = edit
  const dueAt = due === undefined ? entry.dueAt : state.dueAt(due)
  state.reschedule(entry, dueAt, { ...entry.job, payload, ...rank })
  return 'edited'
}

function deadGroups(
  state: MemoryState,
  filter: JobFilter,
  limit: number,
  after: JobId | null,
): { groups: DeadGroup[]; next: JobId | null } {
  const wanted = (entry: Entry): boolean =>
    entry.state === 'dead' && matches(entry, filter) && (after === null || entry.job.id > after)
  const page = firstOf(state.shelves.jobs.values(), wanted, compareIds, limit + 1)
  const chosen = page.slice(0, limit)
  const groups = mergeGroups(chosen.flatMap((entry) => groupOf(recordOf(entry))))
  return { groups, next: page.length > limit ? (chosen.at(-1)?.job.id ?? null) : null }
}
