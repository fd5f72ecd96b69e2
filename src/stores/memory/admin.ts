/** Administration in memory. Lists and bulk changes scan the jobs behind the cursor, up to `maxScan` in order of id. */
import type { JobId } from '../../job/ids.ts'
import { isFinal, isWaiting } from '../../job/states.ts'
import { countOutcomes } from '../changes.ts'
import { groupOf, mergeGroups } from '../dead-groups.ts'
import type {
  Admin,
  ChangeAnswer,
  ChangeOutcome,
  DeadGroupPage,
  JobChange,
  JobEdit,
  JobFilter,
  JobPage,
  ListQuery,
  QueueStatus,
} from '../store.ts'
import { checkCursor } from '../cursor.ts'
import { checkChange, checkText } from '../write-check.ts'
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
        checkText('The name of a queue', queue)
        state.shelves.queue(queue).paused = paused
        state.hint({ type: paused ? 'paused' : 'ready', queue })
      }),
    change: (filter, wanted, limit, after) => step(() => change(state, filter, wanted, limit, after)),
    deadGroups: (filter, limit, after) => step(() => deadGroups(state, filter, limit, after)),
  }
}

function list(state: MemoryState, { limit, after, ...filter }: ListQuery): JobPage {
  const { chosen, ...page } = pageOf(state, { filter, order: 'down', after, limit })
  return { jobs: chosen.map(recordOf), ...page }
}

interface ChosenPage {
  readonly chosen: readonly Entry[]
  readonly next: JobId | null
  readonly looked: number
}

interface PageRequest {
  readonly filter: JobFilter
  readonly order: 'up' | 'down'
  readonly after: JobId | null
  readonly limit: number
}

/** The first `limit` jobs behind the cursor that match, in order of id. */
function pageOf(state: MemoryState, { filter, order, after, limit }: PageRequest): ChosenPage {
  checkCursor(after)
  const compare = order === 'up' ? compareIds : (a: Entry, b: Entry): number => compareIds(b, a)
  const isBehind = ({ job: { id } }: Entry): boolean =>
    after === null || (order === 'up' ? id > after : id < after)
  const behind = candidates(state, filter).filter(isBehind)
  const looked = behind.length <= state.maxScan ? behind : behind.sort(compare).slice(0, state.maxScan)
  const found = firstOf(looked, (entry) => matches(entry, filter), compare, limit + 1)
  const chosen = found.slice(0, limit)
  const last =
    found.length > limit ? chosen.at(-1) : looked.length < behind.length ? looked.at(-1) : undefined
  return { chosen, next: last?.job.id ?? null, looked: looked.length }
}

function candidates({ shelves: { jobs } }: MemoryState, { ids }: JobFilter): Entry[] {
  return ids === undefined ? [...jobs.values()] : [...new Set(ids)].flatMap((id) => jobs.get(id) ?? [])
}

function matches(entry: Entry, filter: JobFilter): boolean {
  const { states, queues, names, fingerprints, finishedFrom, finishedBefore } = filter
  const { tags, createdFrom, createdBefore, idPrefix } = filter
  return (
    (tags === undefined || entry.job.envelope.tags.some((tag) => tags.includes(tag))) &&
    (createdFrom === undefined || entry.createdAt >= createdFrom) &&
    (createdBefore === undefined || entry.createdAt < createdBefore) &&
    (idPrefix === undefined || entry.job.id.startsWith(idPrefix)) &&
    (fingerprints === undefined ||
      (entry.error !== null && fingerprints.includes(entry.error.fingerprint))) &&
    (finishedFrom === undefined || (entry.end !== null && entry.end.at >= finishedFrom)) &&
    (finishedBefore === undefined || (entry.end !== null && entry.end.at < finishedBefore)) &&
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

function cancel(state: MemoryState, entry: Entry, reason: string | null): ChangeOutcome {
  if (isFinal(entry.state)) return 'final'
  if (isWaiting(entry.state)) {
    state.finish(entry, 'cancelled', { reason })
    return 'cancelled'
  }
  if (entry.cancel?.heard === true) return 'heard'
  entry.cancel ??= { reason, heard: false }
  if (entry.lease !== null) state.hint({ type: 'cancel', worker: entry.lease.worker })
  return 'requested'
}

function change(
  state: MemoryState,
  filter: JobFilter,
  wanted: JobChange,
  limit: number,
  after: JobId | null,
): ChangeAnswer {
  checkChange(wanted)
  const { chosen, ...page } = pageOf(state, { filter, order: 'up', after, limit })
  return { outcomes: countOutcomes(chosen.map((entry) => apply(state, entry, wanted))), ...page }
}

function apply(state: MemoryState, entry: Entry, wanted: JobChange): ChangeOutcome {
  switch (wanted.type) {
    case 'cancel':
      return cancel(state, entry, wanted.reason)
    case 'discard':
      if (!isFinal(entry.state)) return 'not_final'
      state.shelves.forget(entry)
      return 'discarded'
    case 'replay':
      return replay(state, entry, wanted.payload ?? entry.job.payload)
    case 'edit':
      return edit(state, entry, wanted)
  }
}

function replay(state: MemoryState, entry: Entry, payload: string): ChangeOutcome {
  if (entry.state !== 'dead') return 'not_dead'
  const { unique } = entry.job
  const now = state.now()
  if (unique !== null) {
    const holder = state.keys.holderOf(unique.key, now)
    if (holder !== undefined && holder !== entry.job.id) return 'key_held'
    state.keys.take(unique, entry.job.id, now)
  }
  entry.attempt = 0
  entry.crashes = 0
  state.reschedule(entry, now, { ...entry.job, payload })
  entry.end = null
  return 'replayed'
}

function edit(state: MemoryState, entry: Entry, wanted: JobEdit): ChangeOutcome {
  if (isFinal(entry.state)) return 'final'
  if (!isWaiting(entry.state)) return 'running'
  const { payload = entry.job.payload, rank = {}, due } = wanted
  const dueAt = due === undefined ? entry.dueAt : state.dueAt(due)
  state.reschedule(entry, dueAt, { ...entry.job, payload, ...rank })
  return 'edited'
}

function deadGroups(
  state: MemoryState,
  filter: JobFilter,
  limit: number,
  after: JobId | null,
): DeadGroupPage {
  if (filter.states?.includes('dead') === false) return { groups: [], next: null, looked: 0 }
  const dead: JobFilter = { ...filter, states: ['dead'] }
  const { chosen, ...page } = pageOf(state, { filter: dead, order: 'up', after, limit })
  return { groups: mergeGroups(chosen.flatMap((entry) => groupOf(recordOf(entry)))), ...page }
}
