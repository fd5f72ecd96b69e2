/**
 * Goes through the jobs that a filter selects, in order of id, in steps that block the server for a few milliseconds
 * each. Where the ids come from:
 * - the ids that the filter names;
 * - the sets of the states that it names, if those hold few jobs: all of them are read at one moment;
 * - the index of dead jobs by id, if it selects only those;
 * - the index of all jobs by id.
 * A job that matches throughout is found once, however other jobs move. Each call scans a bounded number of jobs.
 */
import type { JobId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import { checkCursor } from '../cursor.ts'
import type { JobFilter } from '../store.ts'
import { boundsOf, filterText, statesOf } from './filters.ts'
import { packId, packKnown, unpackId, type PackedId } from './ids.ts'
import { recordOf, type ReadRow } from './records.ts'
import type { Run } from './run.ts'
import type { Shard, Shards } from './shards.ts'

export interface Walk {
  readonly filter: JobFilter
  readonly order: 'up' | 'down'
  /** Starts after this id. */
  readonly after: JobId | null
}

/** A job and where it lives. */
export interface Found {
  readonly id: PackedId
  readonly shard: Shard
}

/** Number of jobs that one call scans: up to 40 ms of the server's time, in steps. */
export const DEFAULT_BUDGET = 5_000
/** Number of jobs that one script scans. */
const STEP = 1_000
/** States with fewer jobs are read as a whole: at most 220 KB of ids. */
const FEW = 10_000
const MATCHED_AT_ONCE = 1_000
const READ_AT_ONCE = 200

/** Ids of one shard, in order. */
interface Part {
  readonly ids: readonly PackedId[]
  readonly looked: number
  /** All ids up to this one were looked at; null for all there are. */
  readonly upTo: PackedId | null
}

/** At most `want` ids behind `after`, from at most `most` that it looks at. */
type Source = (after: PackedId | null, want: number, most: number) => Promise<Part>

export class Finder {
  readonly #run: Run
  readonly #walk: Walk
  readonly #budget: number
  readonly #sources: Promise<readonly (readonly [Shard, Source])[]>
  #after: PackedId | null
  #isOver = false
  looked = 0

  constructor(run: Run, shards: Shards, walk: Walk, budget: number) {
    this.#run = run
    this.#walk = walk
    this.#budget = budget
    const after = checkCursor(walk.after)
    this.#after = after === null ? null : packId(after)
    this.#sources = shards
      .all()
      .then((all) => Promise.all(all.map(async (shard) => [shard, await this.#sourceOf(shard)] as const)))
  }

  /** Where a later call continues; null at the end. */
  get next(): JobId | null {
    return this.#isOver || this.#after === null ? null : unpackId(this.#after)
  }

  /** Whether the end was reached, or the budget was used up. */
  get isDone(): boolean {
    return this.#isOver || this.looked >= this.#budget
  }

  /** The next ids, at most `want` of them; none does not mean that there are no more. */
  async step(want: number): Promise<Found[]> {
    const sources = await this.#sources
    const most = Math.max(1, Math.min(STEP, this.#budget - this.looked))
    const parts = await Promise.all(sources.map(([, source]) => source(this.#after, want, most)))
    for (const { looked } of parts) this.looked += looked
    const stops = parts.flatMap(({ upTo }) => upTo ?? [])
    // Behind the first of these, another shard may have ids that were not looked at yet.
    const horizon = stops.toSorted(this.#compare)[0] ?? null
    const found = parts
      .flatMap(({ ids }, index) => ids.map((id) => ({ id, shard: sources[index]?.[0] as Shard })))
      .filter(({ id }) => horizon === null || this.#compare(id, horizon) <= 0)
      .sort((a, b) => this.#compare(a.id, b.id))
    const taken = found.slice(0, want)
    this.#isOver = horizon === null && taken.length === found.length
    this.#after = (taken.length < found.length ? taken.at(-1)?.id : horizon) ?? this.#after
    return taken
  }

  /** Goes back to this one, so that `next` continues behind it. */
  backTo(id: PackedId): void {
    this.#after = id
    this.#isOver = false
  }

  readonly #compare = (a: PackedId, b: PackedId): number =>
    (a < b ? -1 : a > b ? 1 : 0) * (this.#walk.order === 'up' ? 1 : -1)

  async #sourceOf(shard: Shard): Promise<Source> {
    const { filter } = this.#walk
    const { ids, queues } = filter
    const states = statesOf(filter)
    const bounds = boundsOf(filter.idPrefix)
    if (bounds === null || states === '' || queues?.length === 0) return nothing
    if (ids !== undefined)
      return this.#listed(
        shard,
        ids.flatMap((id) => packKnown(id) ?? []),
        bounds,
      )
    const few = states === undefined ? null : await this.#gather(shard, states)
    if (few !== null) return this.#listed(shard, few, bounds)
    return this.#indexed(shard, states === 'd' ? 'dead' : 'all', bounds)
  }

  /** Null if there are too many, or if there is a better source. */
  async #gather(shard: Shard, states: string): Promise<readonly PackedId[] | null> {
    const { queues = [], finishedFrom, finishedBefore } = this.#walk.filter
    if (states === 'd' && finishedFrom === undefined && finishedBefore === undefined) return null
    const args = [FEW, states, finishedFrom ?? '', finishedBefore ?? '', ...queues]
    const [isAll, ids] = await this.#run<[number, PackedId[]]>(shard, 'gather', args)
    return isAll === 1 ? ids : null
  }

  #listed(shard: Shard, ids: readonly PackedId[], [low, high]: readonly [string, string]): Source {
    const filter = filterText(this.#walk.filter)
    const ordered = [...new Set(ids)]
      .filter((id) => id >= low && (high === '' || id <= high))
      .sort(this.#compare)
    return async (after, want, most) => {
      const rest = after === null ? ordered : ordered.filter((id) => this.#compare(id, after) > 0)
      const piece = rest.slice(0, Math.min(most, Math.max(2 * want, 100), MATCHED_AT_ONCE))
      if (piece.length === 0) return NOTHING
      const matched = await this.#run<PackedId[]>(shard, 'match', [filter, ...piece])
      const ids = matched.slice(0, want)
      const last = ids.length < matched.length ? ids.at(-1) : piece.length < rest.length ? piece.at(-1) : null
      return { ids, looked: piece.length, upTo: last ?? null }
    }
  }

  #indexed(shard: Shard, index: 'all' | 'dead', bounds: readonly [string, string]): Source {
    const { states, ...others } = this.#walk.filter
    // All jobs of the index of dead jobs are dead.
    const filter = filterText(index === 'dead' || states === undefined ? others : { ...others, states })
    return async (after, want, most) => {
      const args = [index, this.#walk.order, after ?? '', ...bounds, want, most, filter]
      const [upTo, looked, ids] = await this.#run<[PackedId | '', number, PackedId[]]>(shard, 'walk', args)
      return { ids, looked, upTo: upTo === '' ? null : upTo }
    }
  }
}

const NOTHING: Part = { ids: [], looked: 0, upTo: null }
const nothing: Source = () => Promise.resolve(NOTHING)

/** In the order of the ids; jobs that are gone are left out. */
export async function readFound(
  run: Run,
  found: readonly Found[],
): Promise<(Found & { record: JobRecord })[]> {
  const records = new Map<string, JobRecord>()
  for (const [shard, ids] of byShard(found)) {
    for (let at = 0; at < ids.length; at += READ_AT_ONCE)
      for (const row of await run<ReadRow[]>(shard, 'read', ids.slice(at, at + READ_AT_ONCE)))
        records.set(row[0], recordOf(row))
  }
  return found.flatMap((one) => {
    const record = records.get(one.id)
    return record === undefined ? [] : [{ ...one, record }]
  })
}

export function byShard(found: readonly Found[]): Map<Shard, PackedId[]> {
  const ids = new Map<Shard, PackedId[]>()
  for (const { shard, id } of found) {
    const mine = ids.get(shard)
    if (mine === undefined) ids.set(shard, [id])
    else mine.push(id)
  }
  return ids
}
