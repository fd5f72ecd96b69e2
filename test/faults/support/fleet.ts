/**
 * Clients and workers on a real server, all in this process and each with a store of its own, behind a line that can
 * break. They work until a fault has done its worst and all is drained; then their history is judged.
 */
import { holdfast, type RunningWorker } from '../../../src/index.ts'
import type { Store } from '../../../src/stores/store.ts'
import { check, type Verdict } from '../../checker/check.ts'
import type { HistoryEvent } from '../../checker/history.ts'
import type { CheckOptions } from '../../checker/options.ts'
import { History, recordedStore, snapshot, type TimedEvent } from '../../support/recorded-store.ts'
import { failure } from './failure.ts'
import { Strain } from './strain.ts'
import { until } from './until.ts'
import { Client, defineWork, type Failure } from './workload.ts'

/** Where a fleet works. */
export interface Site {
  /** Past the line that breaks; open, and closed with the fleet. */
  readonly direct: Store
  /** By that line: a new one for each node. */
  readonly byLine: () => Store
  /** What the store itself has kept of its moves; null where it keeps none, and clients alone can tell. */
  readonly kept: (history: History) => Promise<readonly TimedEvent[] | null>
  /** How long a client's call may take, tries and all. @default 2_000 */
  readonly callMs?: number | undefined
}

/** For tests with a fleet: some seconds each, but a machine that is strained is no failure. */
export const PATIENT = { timeout: 300_000 }

const WORKERS = 2
const CLIENTS = 2
const SLOTS = 4
const GRACE_MS = 2_000
const LEASE_MS = 3_000
/** How soon a worker has to claim again when the store is back. */
const RECLAIM_MS = 5_000
/** How long a client's call may take, tries and all. */
const CALL_MS = 2_000
const START_TRIES = 10

/** From the leases above, for a machine that is not strained. */
function bounds(allow: (ms: number) => number): CheckOptions {
  return {
    leaseMs: LEASE_MS,
    sweepMs: LEASE_MS / 6,
    epsilonMs: allow(1_000),
    failoverMs: allow(LEASE_MS + LEASE_MS / 2 + 1_000),
    strangerMs: allow(3 * LEASE_MS),
    visibleMs: allow(100),
    // A claim sweeps from the start after 5 s at the latest; but what waits during an outage is claimable all the while.
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
  /** Enqueues that were acked as new jobs. */
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
  readonly clients: Client[] = []
  readonly #site: Site
  readonly #callMs: number
  readonly #members: Member[] = []
  readonly #closing: (() => Promise<void>)[] = []
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
    }
  }

  /** Handlers that have returned. */
  get finished(): number {
    return this.#finished
  }

  get acked(): number {
    return this.clients.reduce((sum, client) => sum + client.acked, 0)
  }

  /** What failed, as the application sees it. */
  get failures(): readonly Failure[] {
    return this.clients.flatMap((client) => client.failures)
  }

  /** Enqueues among it. */
  get refused(): readonly Failure[] {
    return this.failures.filter(({ what }) => what === 'enqueue')
  }

  /** Wake-ups that came to a worker since it was last asked. */
  takeHints(node: string): number {
    const hints = this.#hints.get(node) ?? 0
    this.#hints.set(node, 0)
    return hints
  }

  get workers(): readonly string[] {
    return this.#members.map(({ node }) => node)
  }

  /** How one enqueue by the application ends while the store is away: at its deadline, or else it says so. */
  async enqueueInVain(): Promise<unknown> {
    const begun = performance.now()
    const error = await this.clients[0]?.enqueue().then(
      (id) => new Error(`It was enqueued as ${id}.`),
      (thrown: unknown) => thrown,
    )
    const lateMs = performance.now() - begun - this.allow(this.#callMs + 500)
    return lateMs <= 0 ? error : new Error(`It failed ${lateMs} ms after its deadline.`, { cause: error })
  }

  /** What may take so long may take this long on a machine that is strained. */
  allow(ms: number): number {
    return this.#strain.allow(ms)
  }

  async start(): Promise<void> {
    this.history.write({ type: 'phase', phase: 'faulty' })
    for (let index = 0; index < WORKERS; index++) await this.#startWorker(`worker-${index}`)
    for (let index = 0; index < CLIENTS; index++) this.#startClient(`client-${index}`)
  }

  /** Until so many more jobs have been run. */
  async progress(jobs: number): Promise<void> {
    const before = this.#finished
    await until(`${jobs} more jobs to finish`, () => this.#finished >= before + jobs)
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

  /** How long the last worker took to claim again since the store is back. Rejects if that is longer than promised. */
  async reclaimed(): Promise<number> {
    await until('all workers to claim again', () => this.#claimedSince.size === this.#members.length)
    const tookMs = Math.max(...this.#claimedSince.values())
    if (tookMs <= this.allow(RECLAIM_MS)) return tookMs
    throw new Error(`A worker claimed again only ${Math.round(tookMs)} ms after the store was back.`)
  }

  /** Until nothing waits and nothing runs. Looks for jobs: counters are among the things that a broken store gets wrong. */
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

  /** From here on nothing is broken any more. Drains, stops everybody in good order, and judges. */
  async judge(): Promise<Judged> {
    this.history.write({ type: 'phase', phase: 'healed' })
    await Promise.all(this.clients.map((client) => client.stop()))
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

  /** Whatever is left; safe to call again. */
  async close(): Promise<void> {
    await this.#strain.stop()
    await Promise.all(this.clients.map((client) => client.stop()))
    await Promise.all(this.#closing.splice(0).map((close) => close().catch(() => undefined)))
    await this.#site.direct.close()
  }

  async #startWorker(node: string): Promise<void> {
    const hf = this.#holdfast(node)
    defineWork(hf, this.history, node, () => this.#finished++)
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
    const hf = this.#holdfast(node)
    this.history.write({ type: 'node', what: 'started', node, queues: [], slots: 0, upkeep: false })
    this.clients.push(new Client(hf, this.history, node))
  }

  #holdfast(node: string) {
    const store = recordedStore(this.#site.byLine(), {
      history: this.history,
      node,
      workerPatienceMs: LEASE_MS / 3,
      onHint: () => this.#hints.set(node, (this.#hints.get(node) ?? 0) + 1),
    })
    const hf = holdfast({ store, logger: false, timeout: this.#callMs })
    this.#closing.push(() => hf.close())
    return hf
  }

  async #stop({ node, worker }: Member): Promise<void> {
    this.history.write({ type: 'stop', what: 'begin', node, graceMs: GRACE_MS })
    await worker.stop()
    this.history.write({ type: 'stop', what: 'end', node })
    this.history.write({ type: 'node', what: 'stopped', node })
  }
}

/** The deadlines are those of what is tested: a machine that is busy with other tests may need some tries to start. */
async function patiently<T>(begin: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await begin()
    } catch (error) {
      if (tries === START_TRIES) throw error
    }
  }
}
