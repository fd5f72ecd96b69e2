/**
 * What workers ask of a cluster. A worker is known to the shard of control from its start, and to the shard of a queue
 * from its first claim there; it is alive while it is alive to all of them. A lease is in the shard that granted it,
 * and this process remembers which. Calls that concern several shards are one step in each.
 */
import type { Token, WorkerId } from '../../../job/ids.ts'
import type {
  CycleAnswer,
  CycleRequest,
  HeartbeatAnswer,
  HeartbeatRequest,
  Report,
  SettleAnswer,
} from '../../store.ts'
import type { Run } from '../run.ts'
import type { Shard, Shards } from '../shards.ts'
import { Sequence, ShardWorkerCalls, type WorkerCalls } from '../worker-calls.ts'

/** Maximum number of tokens whose shard is remembered. The oldest are forgotten, and searched for if needed again. */
const MOST_REMEMBERED = 100_000
const NO_REPORTS: readonly Report[] = []
const NO_PARTS: ReadonlyMap<Shard, readonly { readonly item: Report }[]> = new Map()

export class ClusterWorkerCalls implements WorkerCalls {
  readonly #run: Run
  readonly #shards: Shards
  readonly #sequence = new Sequence()
  readonly #calls = new Map<Shard, ShardWorkerCalls>()
  /** The shards of queues that each worker is known to. */
  readonly #joined = new Map<WorkerId, Set<Shard>>()
  readonly #shardOfToken = new Map<Token, Shard>()
  /** What the newest heartbeat of each worker said of how many of its jobs can run at once. */
  readonly #atOnce = new Map<WorkerId, Pick<HeartbeatRequest, 'atOnce' | 'nth'>>()

  constructor(run: Run, shards: Shards) {
    this.#run = run
    this.#shards = shards
  }

  async register(worker: WorkerId, leaseMs: number, atOnce?: number): Promise<void> {
    await this.#at(this.#shards.control).register(worker, leaseMs, atOnce)
    const joined = [...(this.#joined.get(worker) ?? [])]
    this.#joined.set(worker, new Set(joined))
    await Promise.all(joined.map((shard) => this.#at(shard).register(worker, leaseMs, atOnce)))
  }

  /** Control comes last, because a worker that is known there may hold leases. */
  async retire(worker: WorkerId): Promise<void> {
    await Promise.all((await this.#shardsOf(worker)).map((shard) => this.#at(shard).retire(worker)))
    await this.#at(this.#shards.control).retire(worker)
    this.#joined.delete(worker)
    this.#atOnce.delete(worker)
  }

  /**
   * One call for each shard that has a part, and the claim's shard last: if a call elsewhere fails, no claim is left behind
   * that this process does not know of. Reports and settles of a lease are in one shard, and so in one call.
   */
  async cycle(request: CycleRequest, withinMs?: number): Promise<CycleAnswer> {
    const { worker, settle, claim, reports = NO_REPORTS } = request
    const parts = await this.#byShard(settle)
    const reported = reports.length === 0 ? NO_PARTS : await this.#byShard(reports)
    const home = claim === null ? null : this.#shards.of(claim.queue)
    const settled: SettleAnswer[] = settle.map(() => 'lost')
    const write = async (shard: Shard, wanted: CycleRequest['claim']): Promise<CycleAnswer> => {
      const mine = parts.get(shard) ?? []
      const part = {
        worker,
        settle: mine.map(({ item }) => item),
        claim: wanted,
        reports: (reported.get(shard) ?? []).map(({ item }) => item),
      }
      const answer = await this.#at(shard).cycle(part, withinMs)
      for (const [index, { place }] of mine.entries()) settled[place] = answer.settled[index] ?? 'lost'
      return answer
    }
    const elsewhere = [...new Set([...parts.keys(), ...reported.keys()])].filter((shard) => shard !== home)
    await Promise.all(elsewhere.map((shard) => write(shard, null)))
    if (claim === null || home === null) return { alive: await this.#isAlive(worker), settled, leases: [] }
    const mayClaim = await this.#join(worker, claim.queue)
    const answer = await write(home, mayClaim ? claim : null)
    for (const { token } of answer.leases) this.#remember(token, home)
    return { alive: mayClaim && answer.alive, settled, leases: answer.leases }
  }

  async heartbeat(request: HeartbeatRequest): Promise<HeartbeatAnswer> {
    const { worker, undelivered, heard = [], ...rest } = request
    const { nth = 0 } = this.#atOnce.get(worker) ?? {}
    if (rest.atOnce !== undefined && (rest.nth ?? nth) >= nth) this.#atOnce.set(worker, rest)
    const released = await this.#byShard(undelivered.map((token) => ({ token })))
    const cancelled = await this.#byShard(heard)
    const shards = await this.#shardsOf(worker)
    const [control, ...others] = await Promise.all(
      [this.#shards.control, ...shards].map(async (shard) => {
        const mine = (released.get(shard) ?? []).map(({ item }) => item.token)
        const noted = (cancelled.get(shard) ?? []).map(({ item }) => item)
        return this.#at(shard).heartbeat({ ...rest, worker, undelivered: mine, heard: noted })
      }),
    )
    const answers = control === undefined ? others : [control, ...others]
    for (const [index, { tokens }] of others.entries())
      for (const token of tokens) this.#remember(token, shards[index] as Shard)
    if (!answers.every(({ alive }) => alive)) {
      // The worker gives up all its leases. Retire it, so that they can be rescued before they expire.
      await this.retire(worker)
      return { alive: false, tokens: [], cancelled: [], paused: [] }
    }
    return {
      alive: true,
      tokens: answers.flatMap(({ tokens }) => tokens),
      cancelled: answers.flatMap((answer) => answer.cancelled),
      paused: answers.flatMap(({ paused }) => paused),
    }
  }

  /** Asks control only; a heartbeat asks the other shards too. */
  async #isAlive(worker: WorkerId): Promise<boolean> {
    return (await this.#leaseOf(worker, this.#shards.control)).length > 0
  }

  #at(shard: Shard): ShardWorkerCalls {
    const known = this.#calls.get(shard) ?? new ShardWorkerCalls(this.#run, shard, this.#sequence)
    this.#calls.set(shard, known)
    return known
  }

  /** Registers the worker in the queue's shard, for as long as control knows it; false if control does not. */
  async #join(worker: WorkerId, queue: string): Promise<boolean> {
    const shard = this.#shards.of(queue)
    let joined = this.#joined.get(worker)
    if (joined?.has(shard)) return true
    // A rescue looks there, too, from now on.
    await this.#shards.know([queue])
    const sent = this.#atOnce.get(worker)
    const [leaseMs, leftMs, atOnce] = await this.#leaseOf(worker, this.#shards.control)
    if (leaseMs === undefined) return false
    const bound = atOnce === '' ? undefined : Number(atOnce)
    await this.#at(shard).register(worker, leaseMs, sent?.atOnce ?? bound, Number(leftMs))
    joined = this.#joined.get(worker) ?? new Set()
    this.#joined.set(worker, joined.add(shard))
    // A heartbeat that was sent since control was asked may have raised the number, and does not know this shard. Without
    // one this must not renew: the worker would be alive here for longer than elsewhere.
    const newest = this.#atOnce.get(worker)
    if (newest !== undefined && newest !== sent)
      await this.#at(shard).heartbeat({ worker, undelivered: [], ...newest })
    return true
  }

  /** Looks in every shard for a worker that another process registered. */
  async #shardsOf(worker: WorkerId): Promise<readonly Shard[]> {
    const joined = this.#joined.get(worker)
    if (joined !== undefined) return [...joined]
    const all = await this.#shards.all()
    const leases = await Promise.all(all.map((shard) => this.#leaseOf(worker, shard)))
    return all.filter((_, index) => leases[index]?.length !== 0)
  }

  #leaseOf(
    worker: WorkerId,
    shard: Shard,
  ): Promise<readonly [leaseMs: number, leftMs: string, atOnce: string] | readonly []> {
    return this.#run(shard, 'lease_of_worker', [worker])
  }

  #remember(token: Token, shard: Shard): void {
    this.#shardOfToken.set(token, shard)
    if (this.#shardOfToken.size <= MOST_REMEMBERED) return
    const [oldest] = this.#shardOfToken.keys()
    if (oldest !== undefined) this.#shardOfToken.delete(oldest)
  }

  async #byShard<T extends { readonly token: Token }>(
    items: readonly T[],
  ): Promise<Map<Shard, { readonly place: number; readonly item: T }[]>> {
    const parts = new Map<Shard, { place: number; item: T }[]>()
    for (const [place, item] of items.entries()) {
      const shard = this.#shardOfToken.get(item.token) ?? (await this.#find(item.token))
      const part = parts.get(shard)
      if (part === undefined) parts.set(shard, [{ place, item }])
      else part.push({ place, item })
    }
    return parts
  }

  /** For a lease of another process, or one that is long over. Control, which grants no leases, answers for the latter. */
  async #find(token: Token): Promise<Shard> {
    const all = await this.#shards.all()
    const holds = await Promise.all(all.map((shard) => this.#run<number>(shard, 'has_token', [token])))
    const found = all.find((_, index) => holds[index] === 1) ?? this.#shards.control
    this.#remember(token, found)
    return found
  }
}
