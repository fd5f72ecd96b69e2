/** Administration. Lists and bulk changes go through jobs in bounded steps, see `listing.ts`. */
import type { AttemptError } from '../../job/failure.ts'
import type { JobId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import { brokenAnswer, parseAnswer } from '../broken-answer.ts'
import { countOutcomes } from '../changes.ts'
import { mergeGroups } from '../dead-groups.ts'
import type {
  Admin,
  ChangeAnswer,
  ChangeCounts,
  ChangeOutcome,
  DeadGroup,
  DeadGroupPage,
  JobChange,
  JobEdit,
  JobFilter,
  JobPage,
  ListQuery,
  QueueStatus,
} from '../store.ts'
import { dueText } from './bodies.ts'
import { matches } from '../job-filter.ts'
import { checkChange, checkText } from '../write-check.ts'
import { filterText } from './filters.ts'
import { packKnown, unpackId, type PackedId } from './ids.ts'
import { byShard, Finder, readFound, type Found } from './listing.ts'
import { recordOf, type ReadRow } from './records.ts'
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

/** The letters of change.lua. */
const OUTCOMES: Readonly<Record<JobChange['type'], Readonly<Record<string, ChangeOutcome>>>> = {
  cancel: { c: 'cancelled', q: 'requested', h: 'heard', f: 'final' },
  replay: { c: 'replayed', k: 'key_held', f: 'not_dead' },
  discard: { c: 'discarded', f: 'not_final' },
  edit: { c: 'edited', u: 'running', f: 'final' },
}

/** Maximum number of jobs that one script changes, which takes a few milliseconds. */
const CHANGED_AT_ONCE = 250

export interface AdminParts {
  readonly run: Run
  readonly shards: Shards
  readonly refuseWhenClosed: () => void
  /** Maximum number of jobs that one call looks at. */
  readonly budget: number
}

export function redisAdmin(parts: AdminParts): Admin {
  const { run, shards } = parts
  return {
    get: (id) => get(parts, id),
    list: (query) => list(parts, query),
    queues: () => queues(run, shards),
    async setPaused(queue, paused) {
      checkText('The name of a queue', queue)
      await shards.know([queue])
      await run(shards.of(queue), 'pause', [queue, paused ? 1 : 0])
    },
    change: (filter, wanted, limit, after) => change(parts, { filter, limit, after }, wanted),
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

interface PageRequest {
  readonly filter: JobFilter
  readonly limit: number
  readonly after: JobId | null
}

async function change(parts: AdminParts, request: PageRequest, wanted: JobChange): Promise<ChangeAnswer> {
  checkChange(wanted)
  const { filter, limit, after } = request
  const named = namedIn(request)
  if (named !== null) return changeNamed(parts, filter, named, wanted)
  const { found, finder } = await findIds(parts, { filter, limit, after }, 'up')
  let letters = ''
  for (const [shard, ids] of byShard(found)) letters += await changeIn(parts, shard, filter, ids, wanted)
  return { outcomes: outcomesOf(letters, wanted), next: finder.next, looked: finder.looked }
}

/** The ids of a request that names few jobs and filters by nothing but their state; null for any other request. */
function namedIn({ filter, limit, after }: PageRequest): PackedId[] | null {
  const { ids, states: _states, ...rest } = filter
  const isPlain = Object.values(rest).every((part) => part === undefined)
  if (ids === undefined || !isPlain || after !== null) return null
  const named = [...new Set(ids.flatMap((id) => packKnown(id) ?? []))].sort()
  return named.length <= Math.min(limit, CHANGED_AT_ONCE) ? named : null
}

/** Changes named jobs with one script per shard, without a search. */
async function changeNamed(
  parts: AdminParts,
  filter: JobFilter,
  ids: readonly PackedId[],
  wanted: JobChange,
): Promise<ChangeAnswer> {
  parts.refuseWhenClosed()
  if (ids.length === 0) return { outcomes: {}, next: null, looked: 0 }
  const all = await parts.shards.all()
  const letters = (await Promise.all(all.map((shard) => changeIn(parts, shard, filter, ids, wanted)))).join(
    '',
  )
  return { outcomes: outcomesOf(letters, wanted), next: null, looked: letters.length }
}

/**
 * Returns a letter for each of the jobs that is in this shard and matches. A job may have changed since it was found.
 */
async function changeIn(
  { run }: AdminParts,
  shard: Shard,
  filter: JobFilter,
  ids: readonly PackedId[],
  wanted: JobChange,
): Promise<string> {
  let letters = ''
  for (let at = 0; at < ids.length; at += CHANGED_AT_ONCE) {
    const some = ids.slice(at, at + CHANGED_AT_ONCE)
    letters += await run<string>(shard, 'change', [
      wanted.type,
      detailOf(wanted),
      filterText(filter),
      ...some,
    ])
  }
  return letters
}

function outcomesOf(letters: string, { type }: JobChange): ChangeCounts {
  return countOutcomes(
    Array.from(letters, (letter) => {
      const outcome = OUTCOMES[type][letter]
      if (outcome === undefined)
        throw brokenAnswer('redis', `the script change answered "${letter}" to a ${type}`)
      return outcome
    }),
  )
}

/** As change.lua takes it. */
function detailOf(wanted: JobChange): string {
  switch (wanted.type) {
    case 'cancel':
      return JSON.stringify(wanted.reason)
    case 'replay':
      return wanted.payload ?? ''
    case 'discard':
      return ''
    case 'edit':
      return editText(wanted)
  }
}

/** An edit as edit.lua takes it. All parts are texts, because cjson would round long numbers. */
function editText({ payload = '', rank, due }: JobEdit): string {
  const place = rank === undefined ? ['', ''] : [`${rank.priority}`, `${Math.round(rank.headStartMs)}`]
  return JSON.stringify([payload, ...place, due === undefined ? '-' : dueText(due)])
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
  const { fingerprint, kind, message } = parseAnswer<AttemptError>('redis', error)
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

/** A page of jobs, as they are when they are read. */
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

/** Drops the job beyond the limit, which only shows that there are more. */
function cut<One extends Found>(found: readonly One[], limit: number, finder: Finder): One[] {
  const last = found[limit - 1]
  if (found.length > limit && last !== undefined) finder.backTo(last.id)
  return found.slice(0, limit)
}
