/**
 * Clients and workers on a real server, all in this process, each with its own store and a connection that can break. They
 * work through a fault until everything is drained; then the checker judges their history.
 */
import { holdfast, type RunningWorker } from '../../../src/index.ts'
import type { Store } from '../../../src/stores/store.ts'
import { check, type Verdict } from '../../checker/check.ts'
import type { HistoryEvent } from '../../checker/history.ts'
import type { CheckOptions } from '../../checker/options.ts'
import { History, recordedStore, snapshot, type TimedEvent } from '../../support/recorded-store.ts'
import { Signal } from '../../support/signal.ts'
import { until } from '../../support/until.ts'
import { failure } from './failure.ts'
import { Strain } from './strain.ts'
import { Client, defineWork, type Failure } from './workload.ts'

/** Where a fleet works. */
export interface Site {
  /** A store that bypasses the proxy. Already open; closed with the fleet. */
  readonly direct: Store
  /** Open a store through the proxy, one per node. */
  readonly byLine: () => Store
  /** The moves that the store itself recorded, or null if it records none. */
  readonly kept: (history: History) => Promise<readonly TimedEvent[] | null>
  /** Deadline of a client's call, retries included. @default 2_000 */
  readonly callMs?: number | undefined
}

/** For tests with a fleet. They take a few seconds, but much longer on a loaded machine. */
export const PATIENT = { timeout: 300_000 }

const WORKERS = 2
const CLIENTS = 2
const SLOTS = 4
const GRACE_MS = 2_000
const LEASE_MS = 3_000
/** Time within which every worker has to claim again after the store is back. */
const RECLAIM_MS = 5_000
/** Deadline of a client's call, retries included. */
const CALL_MS = 2_000
const START_TRIES = 10
/** How long to wait for progress before it counts as a hang. */
const WAIT_MS = 60_000

/** Derived from the leases above. `allow` adds time on a loaded machine. */
function bounds(allow: (ms: number) => number): CheckOptions {
  return {
    leaseMs: LEASE_MS,
    sweepMs: LEASE_MS / 6,
    epsilonMs: allow(1_000),
    failoverMs: allow(LEASE_MS + LEASE_MS / 2 + 1_000),
    undeliveredMs: allow(3 * LEASE_MS),
    visibleMs: allow(100),
    // A claim sweeps from the start after at most 5 s, but jobs stay claimable all through an outage.
    overtakeMs: allow(15_000),
    reclaimMs: allow(RECLAIM_MS),
    starveMs: allow(20_000),
    stopSlackMs: allow(5_000),
  }
}

interface Member {
  readonly node: string
  readonly worker: RunningWorker
  readonly close: () => Promise<void>
}

export interface Judged {
  readonly verdict: Verdict
  /** Enqueues that were acknowledged as new jobs. */
  readonly acked: number
  readonly completed: number
  readonly events: readonly HistoryEvent[]
}

export async function startFleet(site: Site): Promise<Fleet> {
  const fleet = new Fleet(site)
  await fleet.start()
  return fleet
}

export class Fleet {
  readonly history = new History()
  /** Notified when a handler returns, a worker claims or is woken, and a client's call fails. */
  readonly news = new Signal()
  readonly clients: Client[] = []
  readonly #site: Site
  readonly #callMs: number
  readonly #members: Member[] = []
  readonly #closing: (() => Promise<void>)[] = []
  readonly #closingClients: (() => Promise<void>)[] = []
  readonly #strain: Strain
  readonly #claimedSince = new Map<string, number>()
  readonly #hints = new Map<string, number>()
  #finished = 0
  #upAt = 0

  constructor(site: Site) {
    this.#site = site
    this.#callMs = site.callMs ?? CALL_MS
    this.#strain = new Strain(site.direct)
    this.history.onClaimAnswered = ({ node, invokedAt, at }) => {
      if (invokedAt >= this.#upAt && !this.#claimedSince.has(node))
        this.#claimedSince.set(node, at - this.#upAt)
      this.news.notify()
    }
  }

  /** Handlers that have returned. */
  get finished(): number {
    return this.#finished
  }

  get acked(): number {
    return this.clients.reduce((sum, client) => sum + client.acked, 0)
  }

  /** Calls that failed, as the application sees them. */
  get failures(): readonly Failure[] {
    return this.clients.flatMap((client) => client.failures)
  }

  /** The failed enqueues among them. */
  get refused(): readonly Failure[] {
    return this.failures.filter(({ what }) => what === 'enqueue')
  }

  /** Number of wake-ups that a worker received since the last call. */
  takeHints(node: string): number {
    const hints = this.#hints.get(node) ?? 0
    this.#hints.set(node, 0)
    return hints
  }

  get workers(): readonly string[] {
    return this.#members.map(({ node }) => node)
  }

  /** Enqueues one job while the store is down. Resolves to its error, or to another error if it missed its deadline. */
  async enqueueInVain(): Promise<unknown> {
    const begun = performance.now()
    const error = await this.clients[0]?.enqueue().then(
      (id) => new Error(`It was enqueued as ${id}.`),
      (thrown: unknown) => thrown,
    )
    const lateMs = performance.now() - begun - this.allow(this.#callMs + 500)
    return lateMs <= 0 ? error : new Error(`It failed ${lateMs} ms after its deadline.`, { cause: error })
  }

  /** Extends a time limit if the machine is loaded. */
  allow(ms: number): number {
    return this.#strain.allow(ms)
  }

  async start(): Promise<void> {
    this.history.write({ type: 'phase', phase: 'faulty' })
    for (let index = 0; index < WORKERS; index++) await this.#startWorker(`worker-${index}`)
    for (let index = 0; index < CLIENTS; index++) this.#startClient(`client-${index}`)
  }

  /** Waits until this many more jobs have been run. */
  async progress(jobs: number): Promise<void> {
    const before = this.#finished
    await this.news.until(() => this.#finished >= before + jobs, WAIT_MS)
  }

  fault(kind: string): void {
    this.history.write({ type: 'fault', kind })
  }

  down(): void {
    this.history.write({ type: 'store', what: 'down' })
  }

  up(): void {
    this.#upAt = this.history.write({ type: 'store', what: 'up' })
    this.#claimedSince.clear()
  }

  /** Resolves to the time until every worker has claimed again after `up`. Rejects if that took longer than promised. */
  async reclaimed(): Promise<number> {
    await this.news.until(() => this.#claimedSince.size === this.#members.length, WAIT_MS)
    const tookMs = Math.max(...this.#claimedSince.values())
    if (tookMs <= this.allow(RECLAIM_MS)) return tookMs
    throw new Error(`A worker claimed again only ${Math.round(tookMs)} ms after the store was back.`)
  }

  /** Waits until no job is open. Lists jobs, because a broken store may get its counters wrong. */
  async drained(): Promise<void> {
    await until('everything to be final', async () => {
      const open = await this.#site.direct.admin.list({
        states: ['ready', 'scheduled', 'running'],
        limit: 1,
        after: null,
      })
      return open.jobs.length === 0 && open.next === null
    })
  }

  /** Ends the faulty phase: drains, stops all clients and workers, and judges the history. */
  async judge(): Promise<Judged> {
    this.history.write({ type: 'phase', phase: 'healed' })
    await Promise.all(this.clients.map((client) => client.stop()))
    // A call that a client has given up may still wait for a connection: what it enqueued after the snapshot would look lost.
    await Promise.all(this.#closingClients.splice(0).map((close) => close().catch(() => undefined)))
    await this.drained()
    await Promise.all(this.#members.map((member) => this.#stop(member)))
    this.history.write({ type: 'phase', phase: 'end' })
    const { direct } = this.#site
    this.history.write(await snapshot(direct))
    const events = this.history.events(direct.kind, await this.#site.kept(this.history))
    const verdict = check(
      events,
      bounds((ms) => this.allow(ms)),
    )
    if (verdict.violationCount > 0) throw failure(verdict, events)
    const completed = (await direct.admin.queues()).reduce((sum, { counts }) => sum + counts.completed, 0)
    return { verdict, acked: this.acked, completed, events }
  }

  /** Closes whatever is left. Safe to call again. */
  async close(): Promise<void> {
    await this.#strain.stop()
    await Promise.all(this.clients.map((client) => client.stop()))
    const closing = [...this.#closingClients.splice(0), ...this.#closing.splice(0)]
    await Promise.all(closing.map((close) => close().catch(() => undefined)))
    await this.#site.direct.close()
  }

  async #startWorker(node: string): Promise<void> {
    const { hf } = this.#holdfast(node)
    this.#closing.push(() => hf.close())
    defineWork(hf, this.history, node, () => {
      this.#finished++
      this.news.notify()
    })
    const worker = await patiently(() =>
      hf.work({ concurrency: SLOTS, lease: LEASE_MS, poll: 200, grace: GRACE_MS }),
    )
    this.history.write({
      type: 'node',
      what: 'started',
      node,
      queues: ['default'],
      slots: SLOTS,
      upkeep: true,
    })
    this.#members.push({ node, worker, close: () => hf.close() })
  }

  #startClient(node: string): void {
    const { hf, store } = this.#holdfast(node)
    this.#closingClients.push(() => hf.close())
    this.history.write({ type: 'node', what: 'started', node, queues: [], slots: 0, upkeep: false })
    this.clients.push(new Client(hf, this.history, node, this.news.notify, store))
  }

  #holdfast(node: string) {
    const store = recordedStore(this.#site.byLine(), {
      history: this.history,
      node,
      workerPatienceMs: LEASE_MS / 3,
      onHint: () => {
        this.#hints.set(node, (this.#hints.get(node) ?? 0) + 1)
        this.news.notify()
      },
    })
    const hf = holdfast({ store, logger: false, timeout: this.#callMs })
    return { hf, store }
  }

  async #stop({ node, worker }: Member): Promise<void> {
    this.history.write({ type: 'stop', what: 'begin', node, graceMs: GRACE_MS })
    await worker.stop()
    this.history.write({ type: 'stop', what: 'end', node })
    this.history.write({ type: 'node', what: 'stopped', node })
  }
}

/** Retries, because the deadlines under test may be too short for a worker to start on a loaded machine. */
async function patiently<T>(begin: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await begin()
    } catch (error) {
      if (tries === START_TRIES) throw error
    }
  }
}
