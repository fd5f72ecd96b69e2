/** Administration. Lists and bulk changes go through jobs in bounded steps, see `listing.ts`. */
import type { AttemptError } from '../../job/failure.ts'
import type { JobId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import { mergeGroups } from '../dead-groups.ts'
import type {
  Admin,
  BulkAction,
  ChangeAnswer,
  DeadGroup,
  DeadGroupPage,
  JobFilter,
  JobPage,
  ListQuery,
  QueueStatus,
} from '../store.ts'
import { edit } from './edit.ts'
import { matches } from '../job-filter.ts'
import { filterText } from './filters.ts'
import { packKnown, unpackId, type PackedId } from './ids.ts'
import { byShard, Finder, readFound, type Found } from './listing.ts'
import { recordOf, type ReadRow } from './records.ts'
import type { Run } from './run.ts'
import type { Shards } from './shards.ts'

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
  h: 'heard',
  f: 'final',
}

/** How many jobs one script changes: a few milliseconds. */
const CHANGED_AT_ONCE = 250

export interface AdminParts {
  readonly run: Run
  readonly shards: Shards
  readonly refuseWhenClosed: () => void
  /** Maximum number of jobs that one call looks at. */
  readonly budget: number
}

export function redisAdmin(parts: AdminParts): Admin {
  const { run, shards, refuseWhenClosed } = parts
  return {
    get: (id) => get(parts, id),
    list: (query) => list(parts, query),
    queues: () => queues(run, shards),
    async setPaused(queue, paused) {
      await shards.know([queue])
      await run(shards.of(queue), 'pause', [queue, paused ? 1 : 0])
    },
    cancel: (id, reason) => cancel(parts, id, reason),
    change: (filter, action, limit, after) => change(parts, { filter, limit, after }, action),
    async edit(id, change) {
      refuseWhenClosed()
      return edit(run, shards, id, change)
    },
    deadGroups: (filter, limit, after) => deadGroups(parts, { filter, limit, after }),
  }
}

async function get({ run, shards, refuseWhenClosed }: AdminParts, id: JobId): Promise<JobRecord | null> {
  refuseWhenClosed()
  const packed = packKnown(id)
  if (packed === null) return null
  const all = await shards.all()
  const rows = await Promise.all(all.map((shard) => run<ReadRow[]>(shard, 'read', [packed])))
  const [row] = rows.flat()
  return row === undefined ? null : recordOf(row)
}

async function list(parts: AdminParts, { limit, after, ...filter }: ListQuery): Promise<JobPage> {
  const { found, finder } = await findRecords(parts, { filter, limit, after }, 'down')
  return { jobs: found.map(({ record }) => record), next: finder.next, looked: finder.looked }
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
  { run, shards, refuseWhenClosed }: AdminParts,
  id: JobId,
  reason: string | null,
): ReturnType<Admin['cancel']> {
  refuseWhenClosed()
  const packed = packKnown(id)
  if (packed === null) return 'missing'
  const args = ['cancel', JSON.stringify(reason), filterText({}), packed]
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

async function change(
  parts: AdminParts,
  { filter, limit, after }: PageRequest,
  action: BulkAction,
): Promise<ChangeAnswer> {
  const { found, finder } = await findIds(parts, { filter, limit, after }, 'up')
  let letters = ''
  for (const [shard, ids] of byShard(found)) {
    for (let at = 0; at < ids.length; at += CHANGED_AT_ONCE) {
      const some = ids.slice(at, at + CHANGED_AT_ONCE)
      const args = [action.type, detailOf(action), filterText(filter), ...some]
      // A job that has gone or changed since it was found does not match any more, and has no letter.
      letters += await parts.run<string>(shard, 'change', args)
    }
  }
  const changed = letters.replaceAll('f', '').length
  return { changed, skipped: letters.length - changed, next: finder.next, looked: finder.looked }
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

async function deadGroups(parts: AdminParts, { filter, limit, after }: PageRequest): Promise<DeadGroupPage> {
  parts.refuseWhenClosed()
  if (filter.states?.includes('dead') === false) return { groups: [], next: null, looked: 0 }
  const request: PageRequest = { filter: { ...filter, states: ['dead'] }, limit, after }
  const { found, finder } = await findIds(parts, request, 'up')
  const rows: GroupRow[] = []
  for (const [shard, ids] of byShard(found)) {
    for (let at = 0; at < ids.length; at += CHANGED_AT_ONCE) {
      const args = [filterText(request.filter), ...ids.slice(at, at + CHANGED_AT_ONCE)]
      rows.push(...(await parts.run<GroupRow[]>(shard, 'dead_groups', args)))
    }
  }
  return { groups: mergeGroups(rows.map(groupOf)), next: finder.next, looked: finder.looked }
}

type GroupRow = readonly [
  count: number,
  firstAt: string,
  lastAt: string,
  newest: PackedId,
  queue: string,
  name: string,
  error: string,
]

function groupOf([count, firstAt, lastAt, newest, queue, name, error]: GroupRow): DeadGroup {
  const { fingerprint, kind, message } = JSON.parse(error) as AttemptError
  const times = { firstAt: Number(firstAt), lastAt: Number(lastAt) }
  return { queue, name, fingerprint, count, ...times, newest: unpackId(newest), kind, message }
}

async function findIds(
  { run, shards, refuseWhenClosed, budget }: AdminParts,
  { filter, limit, after }: PageRequest,
  order: 'up' | 'down',
): Promise<{ found: Found[]; finder: Finder }> {
  refuseWhenClosed()
  const finder = new Finder(run, shards, { filter, order, after }, budget)
  const found: Found[] = []
  while (found.length <= limit && !finder.isDone) found.push(...(await finder.step(limit + 1 - found.length)))
  return { found: cut(found, limit, finder), finder }
}

/** A page of jobs as they are when they are read, and where it ended. */
async function findRecords(
  { run, shards, refuseWhenClosed, budget }: AdminParts,
  { filter, limit, after }: PageRequest,
  order: 'up' | 'down',
): Promise<{ found: (Found & { record: JobRecord })[]; finder: Finder }> {
  refuseWhenClosed()
  const finder = new Finder(run, shards, { filter, order, after }, budget)
  const found: (Found & { record: JobRecord })[] = []
  while (found.length <= limit && !finder.isDone) {
    const read = await readFound(run, await finder.step(limit + 1 - found.length))
    found.push(...read.filter(({ record }) => matches(record, filter)))
  }
  return { found: cut(found, limit, finder), finder }
}

/** One more than the limit was looked for, to know whether there is one. */
function cut<One extends Found>(found: readonly One[], limit: number, finder: Finder): One[] {
  const last = found[limit - 1]
  if (found.length > limit && last !== undefined) finder.backTo(last.id)
  return found.slice(0, limit)
}
