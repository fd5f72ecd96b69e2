/** Administration: what it asks of all jobs is documented as O(n), see `listing.ts`. */
import type { JobId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import type { JobState } from '../../job/states.ts'
import type { Admin, BulkAction, ChangeAnswer, JobFilter, ListQuery, QueueStatus } from '../store.ts'
import { packKnown, unpackId, type PackedId } from './ids.ts'
import { findJobs, readJobs, type Found } from './listing.ts'
import type { Run } from './run.ts'
import type { Shard, Shards } from './shards.ts'

type QueueRow = readonly [
  queue: string,
  paused: number,
  ready: number,
  scheduled: number,
  running: number,
  completed: number,
  dead: number,
  cancelled: number,
  oldestReadyAt: string,
]

/** As change.lua names them. */
const LETTERS: Readonly<Record<JobState, string>> = {
  scheduled: 's',
  blocked: 'b',
  ready: 'r',
  running: 'u',
  completed: 'c',
  dead: 'd',
  cancelled: 'x',
}

const CANCELLED: Readonly<Record<string, Awaited<ReturnType<Admin['cancel']>>>> = {
  c: 'cancelled',
  q: 'requested',
  f: 'final',
}

export function redisAdmin(run: Run, shards: Shards, refuseWhenClosed: () => void): Admin {
  return {
    get: (id) => get(run, shards, refuseWhenClosed, id),
    list: (query) => list(run, shards, refuseWhenClosed, query),
    queues: () => queues(run, shards),
    async setPaused(queue, paused) {
      await shards.know([queue])
      await run(shards.of(queue), 'pause', [queue, paused ? 1 : 0])
    },
    cancel: (id, reason) => cancel(run, shards, refuseWhenClosed, id, reason),
    change: (filter, action, limit, after) =>
      change(run, shards, refuseWhenClosed, { filter, action, limit, after }),
  }
}

async function get(run: Run, shards: Shards, refuse: () => void, id: JobId): Promise<JobRecord | null> {
  refuse()
  const packed = packKnown(id)
  if (packed === null) return null
  const all = await shards.all()
  const found = await Promise.all(all.map((shard) => readJobs(run, shard, [packed])))
  return found.flat()[0] ?? null
}

async function list(
  run: Run,
  shards: Shards,
  refuse: () => void,
  query: ListQuery,
): ReturnType<Admin['list']> {
  refuse()
  const after = query.after === null ? null : packKnown(query.after)
  const count = query.limit + 1
  const found = await findJobs(run, shards, { filter: query, order: 'down', after, count })
  const jobs = found.slice(0, query.limit).map(({ record }) => record)
  return { jobs, next: found.length > query.limit ? (jobs.at(-1)?.id ?? null) : null }
}

async function queues(run: Run, shards: Shards): Promise<QueueStatus[]> {
  const all = await shards.all()
  const rows = await Promise.all(all.map((shard) => run<QueueRow[]>(shard, 'queues', [])))
  return rows
    .flat()
    .map(statusOf)
    .sort((a, b) => (a.queue < b.queue ? -1 : 1))
}

function statusOf(row: QueueRow): QueueStatus {
  const [queue, paused, ready, scheduled, running, completed, dead, cancelled, oldest] = row
  return {
    queue,
    paused: paused === 1,
    counts: { scheduled, blocked: 0, ready, running, completed, dead, cancelled },
    oldestReadyAt: oldest === '' ? null : Number(oldest),
  }
}

async function cancel(
  run: Run,
  shards: Shards,
  refuse: () => void,
  id: JobId,
  reason: string | null,
): ReturnType<Admin['cancel']> {
  refuse()
  const packed = packKnown(id)
  if (packed === null) return 'missing'
  const args = ['cancel', JSON.stringify(reason), '', packed]
  const all = await shards.all()
  const letters = await Promise.all(all.map((shard) => run<string>(shard, 'change', args)))
  // One shard has it, if any.
  return letters.flatMap((letter) => CANCELLED[letter] ?? [])[0] ?? 'missing'
}

interface ChangeRequest {
  readonly filter: JobFilter
  readonly action: BulkAction
  readonly limit: number
  readonly after: JobId | null
}

async function change(
  run: Run,
  shards: Shards,
  refuse: () => void,
  { filter, action, limit, after }: ChangeRequest,
): Promise<ChangeAnswer> {
  refuse()
  const found = await findJobs(run, shards, {
    filter,
    order: 'up',
    after: after === null ? null : packKnown(after),
    count: limit + 1,
  })
  const chosen = found.slice(0, limit)
  let letters = ''
  for (const [shard, ids] of byShard(chosen))
    letters += await run<string>(shard, 'change', changeArgs(filter, action, ids))
  const last = chosen.at(-1)
  return {
    changed: letters.replaceAll(/[^cq]/g, '').length,
    // What is gone or has another state by now does not match any more.
    skipped: letters.replaceAll(/[^f]/g, '').length,
    next: found.length > limit && last !== undefined ? unpackId(last.id) : null,
  }
}

function changeArgs({ states }: JobFilter, action: BulkAction, ids: readonly PackedId[]): string[] {
  const reason = action.type === 'cancel' ? action.reason : null
  const meant = (states ?? []).map((state) => LETTERS[state]).join('')
  return [action.type, JSON.stringify(reason), meant, ...ids]
}

function byShard(found: readonly Found[]): Map<Shard, PackedId[]> {
  const ids = new Map<Shard, PackedId[]>()
  for (const { shard, id } of found) ids.set(shard, [...(ids.get(shard) ?? []), id])
  return ids
}
