/** Administration: what it asks of all jobs is documented as O(n), see `listing.ts`. */
import type { JobId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import { groupOf, mergeGroups } from '../dead-groups.ts'
import type { Admin, BulkAction, ChangeAnswer, JobFilter, ListQuery, QueueStatus } from '../store.ts'
import { edit } from './edit.ts'
import { changeFilter } from './filters.ts'
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
    async edit(id, change) {
      refuseWhenClosed()
      return edit(run, shards, id, change)
    },
    async deadGroups(filter, limit, after) {
      refuseWhenClosed()
      return deadGroups(run, shards, { filter, limit, after })
    },
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
  const args = ['cancel', JSON.stringify(reason), changeFilter({}), packed]
  const all = await shards.all()
  const letters = await Promise.all(all.map((shard) => run<string>(shard, 'change', args)))
  // One shard has it, if any.
  return letters.flatMap((letter) => CANCELLED[letter] ?? [])[0] ?? 'missing'
}

interface PageRequest {
  readonly filter: JobFilter
  readonly limit: number
  readonly after: JobId | null
}

interface ChangeRequest extends PageRequest {
  readonly action: BulkAction
}

async function change(
  run: Run,
  shards: Shards,
  refuse: () => void,
  { filter, action, limit, after }: ChangeRequest,
): Promise<ChangeAnswer> {
  refuse()
  const { chosen, next } = await pageOf(run, shards, { filter, limit, after })
  let letters = ''
  for (const [shard, ids] of byShard(chosen))
    letters += await run<string>(shard, 'change', changeArgs(filter, action, ids))
  return {
    changed: letters.replaceAll(/[^cq]/g, '').length,
    // What is gone or has become another by now does not match any more.
    skipped: letters.replaceAll(/[^f]/g, '').length,
    next,
  }
}

/** In order of id, and where to go on. */
async function pageOf(
  run: Run,
  shards: Shards,
  { filter, limit, after }: PageRequest,
): Promise<{ chosen: readonly Found[]; next: JobId | null }> {
  const found = await findJobs(run, shards, {
    filter,
    order: 'up',
    after: after === null ? null : packKnown(after),
    count: limit + 1,
  })
  const chosen = found.slice(0, limit)
  const last = chosen.at(-1)
  return { chosen, next: found.length > limit && last !== undefined ? unpackId(last.id) : null }
}

function changeArgs(filter: JobFilter, action: BulkAction, ids: readonly PackedId[]): string[] {
  return [action.type, detailOf(action), changeFilter(filter), ...ids]
}

function detailOf(action: BulkAction): string {
  switch (action.type) {
    case 'cancel':
      return JSON.stringify(action.reason)
    case 'replay':
      return action.payload ?? ''
    case 'discard':
      return ''
  }
}

function byShard(found: readonly Found[]): Map<Shard, PackedId[]> {
  const ids = new Map<Shard, PackedId[]>()
  for (const { shard, id } of found) ids.set(shard, [...(ids.get(shard) ?? []), id])
  return ids
}

async function deadGroups(
  run: Run,
  shards: Shards,
  { filter, limit, after }: PageRequest,
): ReturnType<Admin['deadGroups']> {
  if (filter.states?.includes('dead') === false) return { groups: [], next: null }
  const { chosen, next } = await pageOf(run, shards, {
    filter: { ...filter, states: ['dead'] },
    limit,
    after,
  })
  return { groups: mergeGroups(chosen.flatMap(({ record }) => groupOf(record))), next }
}
