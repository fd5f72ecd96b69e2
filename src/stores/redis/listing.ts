/**
 * Which jobs a filter means, in order of id. Redis has no index by id, so that this goes through the sets of the states
 * that are asked for (or through all jobs), step by step and without blocking the server, and reads the records of the
 * first only: O(n) in what the sets hold. Jobs that move from one set to another meanwhile are judged by where they are
 * when they are read.
 */
import type { JobRecord } from '../../job/record.ts'
import type { JobState } from '../../job/states.ts'
import type { JobFilter } from '../store.ts'
import { matches, scanFilter, statesOf } from './filters.ts'
import { packKnown, type PackedId } from './ids.ts'
import { recordOf, type ReadRow } from './records.ts'
import type { Run } from './run.ts'
import type { Shard, Shards } from './shards.ts'

export interface Page {
  readonly filter: JobFilter
  readonly order: 'up' | 'down'
  /** Only beyond this one, in that order. */
  readonly after: PackedId | null
  readonly count: number
}

/** A job and where it lives. */
export interface Found {
  readonly id: PackedId
  readonly shard: Shard
  readonly record: JobRecord
}

/** How many ids are held at a time; beyond that, another round is made. */
const HELD = 50_000
const READ_AT_ONCE = 200

interface Candidate {
  readonly id: PackedId
  readonly shard: Shard
}

export async function findJobs(run: Run, shards: Shards, page: Page): Promise<Found[]> {
  const found: Found[] = []
  let { after } = page
  for (;;) {
    const candidates = await candidatesOf(run, shards, { ...page, after })
    for (let at = 0; at < candidates.length && found.length < page.count; at += READ_AT_ONCE)
      found.push(...(await readMatching(run, candidates.slice(at, at + READ_AT_ONCE), page.filter)))
    if (found.length >= page.count || candidates.length < HELD) return found.slice(0, page.count)
    after = candidates.at(-1)?.id ?? null
  }
}

export async function readJobs(run: Run, shard: Shard, ids: readonly PackedId[]): Promise<JobRecord[]> {
  return ids.length === 0 ? [] : (await run<ReadRow[]>(shard, 'read', ids)).map(recordOf)
}

/** In the order of the candidates. */
async function readMatching(run: Run, candidates: readonly Candidate[], filter: JobFilter): Promise<Found[]> {
  const rows = new Map<string, Found>()
  for (const shard of new Set(candidates.map((one) => one.shard))) {
    const ids = candidates.filter((one) => one.shard === shard).map(({ id }) => id)
    for (const row of await run<ReadRow[]>(shard, 'read', ids))
      rows.set(row[0], { id: row[0] as PackedId, shard, record: recordOf(row) })
  }
  return candidates.flatMap(({ id }) => {
    const one = rows.get(id)
    return one !== undefined && matches(one.record, filter) ? [one] : []
  })
}

/** The first of them all, sorted and each once. */
async function candidatesOf(run: Run, shards: Shards, page: Page): Promise<Candidate[]> {
  const first = new First(page.order)
  for (const shard of await shards.all()) {
    if (page.filter.ids !== undefined) {
      const ids = page.filter.ids.flatMap((id) => packKnown(id) ?? [])
      for (const id of await present(run, shard, ids)) first.add(id, shard, page.after)
    } else {
      for (const set of await setsOf(run, shard, page.filter)) await addAll(run, shard, set, page, first)
    }
  }
  return first.take()
}

async function present(run: Run, shard: Shard, ids: readonly PackedId[]): Promise<readonly PackedId[]> {
  const found: PackedId[] = []
  for (let at = 0; at < ids.length; at += READ_AT_ONCE) {
    const some = ids.slice(at, at + READ_AT_ONCE)
    const there = await run<number[]>(shard, 'present', some)
    found.push(...some.filter((_, index) => there[index] === 1))
  }
  return found
}

async function addAll(run: Run, shard: Shard, set: string, page: Page, first: First): Promise<void> {
  const bound = page.after === null ? '' : `${page.order === 'up' ? '>' : '<'}${page.after}`
  const only = scanFilter(page.filter)
  let cursor = '0'
  do {
    const [next, ids] = await run<[string, PackedId[]]>(shard, 'scan', [set, cursor, bound, only])
    for (const id of ids) first.add(id, shard, null)
    cursor = next
  } while (cursor !== '0')
}

/** Where jobs of these states are. All jobs are in one hash for all their life, so that none is missed there. */
async function setsOf(run: Run, shard: Shard, filter: JobFilter): Promise<string[]> {
  const { queues } = filter
  const states = statesOf(filter)
  if (states === undefined) return ['jobs']
  const waiting = states.includes('ready') || states.includes('scheduled')
  const names = waiting ? (queues ?? (await queueNames(run, shard))) : []
  return [...new Set(states)].flatMap((state) => setsOfState(state, names))
}

function setsOfState(state: JobState, queues: readonly string[]): string[] {
  switch (state) {
    case 'ready':
      return queues.flatMap((queue) => [`ready:${queue}`, `suspects:${queue}`])
    case 'scheduled':
      return queues.map((queue) => `delay:${queue}`)
    case 'running':
      return ['batch']
    case 'completed':
    case 'dead':
    case 'cancelled':
      return [state]
    case 'blocked':
      return []
  }
}

async function queueNames(run: Run, shard: Shard): Promise<string[]> {
  return (await run<[string][]>(shard, 'queues', [])).map(([queue]) => queue)
}

/** The first HELD of any number of ids, without holding more than twice as many. */
class First {
  readonly #up: boolean
  #held = new Map<PackedId, Shard>()

  constructor(order: Page['order']) {
    this.#up = order === 'up'
  }

  add(id: PackedId, shard: Shard, after: PackedId | null): void {
    if (after !== null && (this.#up ? id <= after : id >= after)) return
    this.#held.set(id, shard)
    if (this.#held.size >= 2 * HELD) this.#held = new Map(this.#sorted())
  }

  take(): Candidate[] {
    return this.#sorted().map(([id, shard]) => ({ id, shard }))
  }

  #sorted(): [PackedId, Shard][] {
    const sign = this.#up ? 1 : -1
    return [...this.#held].sort(([a], [b]) => (a < b ? -sign : sign)).slice(0, HELD)
  }
}
