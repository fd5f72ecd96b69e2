/**
 * Worker processes under load are killed at random moments and started again, round by round. In some rounds a worker is
 * frozen for longer than its lease instead, and comes back as a zombie that still tries to write. In others the server
 * itself is killed, and comes back with what it has on disk.
 */
import { holdfast } from '../../../src/index.ts'
import { seededRandom, type Random } from '../../../src/std/random.ts'
import type { Store } from '../../../src/stores/store.ts'
import { check } from '../../checker/check.ts'
import type { HistoryEvent } from '../../checker/history.ts'
import type { CheckOptions } from '../../checker/options.ts'
import { History, recordedStore, snapshot, type TimedEvent } from '../../support/recorded-store.ts'
import { failure } from './failure.ts'
import { pause, until } from '../../support/until.ts'
import { WorkerProcess } from './worker-process.ts'
import { Client } from './workload.ts'

/** The server under test, and the facts that only its store knows. */
export interface KillSite {
  readonly url: string
  /** The file with the jobs of the workers, which record their effects with their fence. */
  readonly jobs: string
  readonly store: Store
  /** Number of clients, each of which enqueues about sixty jobs per second. */
  readonly clients: number
  /** The jobs under the leases of these workers. */
  readonly held: (workers: readonly string[]) => Promise<readonly HeldJob[]>
  /** Whether the store has forgotten these workers, and each of the jobs is under a later lease or final. */
  readonly isRecovered: (workers: readonly string[], jobs: readonly HeldJob[]) => Promise<boolean>
  /** At the end. */
  readonly inspect: () => Promise<Inspected>
  /** Whether a process that was just stopped blocks every other writer, which no lease can prevent. */
  readonly holdsUpOthers?: (pid: number) => Promise<boolean>
  /** Kills the server and starts it again. Without it, the server stays up. */
  readonly killServer?: () => Promise<void>
}

export interface HeldJob {
  readonly id: string
  readonly token: number
}

export interface Inspected {
  /** The moves that the store itself recorded, or null if it records none. */
  readonly moves: readonly TimedEvent[] | null
  /** Other violations found in the store, in words. */
  readonly broken: readonly string[]
  readonly badEffects: number
  readonly repeatedEffects: number
}

export interface KillOptions {
  readonly rounds: number
  readonly seed?: number
  readonly onRound?: (round: Round) => void
}

type What = 'kill' | 'freeze' | 'server kill'

export interface Round {
  readonly number: number
  readonly what: What
  /** Number of jobs that the victim held. For a server: all running jobs. */
  readonly held: number
}

export interface KillReport {
  readonly rounds: number
  readonly kills: number
  readonly freezes: number
  readonly serverKills: number
  readonly acked: number
  readonly completed: number
  readonly dead: number
  readonly cancelled: number
  /** Number of acknowledged jobs that are in no final state at the end. */
  readonly lost: number
  /** Null if the store records no moves, because the workers' own calls are not recorded. */
  readonly rescued: number | null
  readonly staleSettlesRefused: number
  readonly violations: readonly string[]
  /** Completed jobs without exactly one effect that carries the token of their completion. */
  readonly badEffects: number
  /** Runs of completed jobs that their attempts do not count: before a crash, or before a `replace` that started again from zero. */
  readonly repeatedEffects: number
  /**
   * For each job that a victim held: the time in ms until it ran or was finished elsewhere, without the backoff of its
   * earlier crashes. Empty if the store records no moves.
   */
  readonly recoveriesMs: readonly number[]
}

export const LEASE_MS = 3_000
/** How soon what a dead worker held has to run elsewhere. */
export const RECOVERY_MS = LEASE_MS + 2_000
const WORKERS = 3
const SLOTS = 3
const FREEZE_EVERY = 5
/** Of 125 rounds, 25 are freezes, and 21 come after the server was killed. */
const SERVER_EVERY = 6
const BOUNDS: CheckOptions = {
  leaseMs: LEASE_MS,
  sweepMs: LEASE_MS / 6,
  epsilonMs: 2_000,
  failoverMs: LEASE_MS + LEASE_MS / 2 + 2_000,
  visibleMs: 100,
  // A claim sweeps from the start after this at the latest.
  overtakeMs: 6_000,
}

interface Wound {
  readonly at: number
  readonly jobs: readonly HeldJob[]
}

export async function killSoak(site: KillSite, options: KillOptions): Promise<KillReport> {
  const soak = new Soak(site, seededRandom(options.seed ?? Math.floor(Math.random() * 2 ** 32)))
  try {
    return await soak.run(options)
  } finally {
    await soak.close()
  }
}

class Soak {
  readonly #site: KillSite
  readonly #random: Random
  readonly #history = new History()
  readonly #clients: Client[] = []
  readonly #closing: (() => Promise<void>)[] = []
  #workers: WorkerProcess[] = []
  readonly #gone: WorkerProcess[] = []
  readonly #wounds: Wound[] = []
  #started = 0

  constructor(site: KillSite, random: Random) {
    this.#site = site
    this.#random = random
    this.#history.write({ type: 'phase', phase: 'faulty' })
  }

  async run({ rounds, onRound }: KillOptions): Promise<KillReport> {
    await Promise.all(Array.from({ length: WORKERS }, () => this.#start()))
    for (let index = 0; index < this.#site.clients; index++) this.#startClient(`client-${index}`)
    for (let number = 1; number <= rounds; number++) {
      if (number % SERVER_EVERY === 2 && this.#site.killServer !== undefined) {
        await pause(100 + this.#random.float() * 900)
        const held = await this.#killServer(this.#site.killServer)
        onRound?.({ number, what: 'server kill', held })
      }
      const what = number % FREEZE_EVERY === 3 ? 'freeze' : 'kill'
      await pause(100 + this.#random.float() * 900)
      const held = what === 'kill' ? await this.#kill() : await this.#freeze()
      onRound?.({ number, what, held })
    }
    return this.#report(rounds)
  }

  #startClient(node: string): void {
    const store = recordedStore(this.#site.store, {
      history: this.#history,
      node,
      workerPatienceMs: Infinity,
    })
    const hf = holdfast({ store, logger: false })
    this.#closing.push(() => hf.close())
    this.#clients.push(new Client(hf, this.#history, node))
  }

  async close(): Promise<void> {
    await this.#stopClients()
    await Promise.all(this.#workers.map((worker) => worker.kill()))
    await Promise.all(this.#closing.splice(0).map((close) => close()))
  }

  async #stopClients(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.stop()))
  }

  async #start(): Promise<void> {
    const name = `worker-${this.#started++}`
    const worker = new WorkerProcess(name, {
      jobs: this.#site.jobs,
      url: this.#site.url,
      leaseMs: LEASE_MS,
      slots: SLOTS,
      onWorker: (id) => this.#noteWorker(name, id),
    })
    this.#workers.push(worker)
    await worker.started()
  }

  /** Its calls are its own; that it is there is enough to judge what becomes of its leases. */
  #noteWorker(node: string, worker: string): void {
    const { op } = this.#history.begin(node, { kind: 'register', worker, leaseMs: LEASE_MS })
    this.#history.write({ type: 'answer', op, node, reply: { kind: 'register' } })
    this.#history.write({
      type: 'node',
      what: 'started',
      node,
      queues: ['default'],
      slots: SLOTS,
      upkeep: true,
    })
  }

  async #kill(): Promise<number> {
    const victim = this.#victim()
    const at = this.#history.write({ type: 'fault', kind: 'kill', node: victim.name })
    await victim.kill()
    this.#history.write({ type: 'node', what: 'killed', node: victim.name })
    this.#workers = this.#workers.filter((one) => one !== victim)
    this.#gone.push(victim)
    const starting = this.#start()
    const held = await this.#wound(victim, at)
    await starting
    await this.#recovered(victim)
    return held
  }

  /** Until somebody else has its jobs; then it may go on. */
  async #freeze(): Promise<number> {
    const victim = this.#victim()
    const at = this.#history.write({ type: 'fault', kind: 'freeze', node: victim.name })
    this.#history.write({ type: 'node', what: 'frozen', node: victim.name })
    victim.signal('SIGSTOP')
    while ((await this.#site.holdsUpOthers?.(victim.pid)) === true) {
      victim.signal('SIGCONT')
      await pause(this.#random.float() * 20)
      victim.signal('SIGSTOP')
    }
    try {
      const held = await this.#wound(victim, at)
      await this.#recovered(victim)
      return held
    } finally {
      victim.signal('SIGCONT')
      this.#history.write({ type: 'node', what: 'thawed', node: victim.name })
    }
  }

  #victim(): WorkerProcess {
    const index = Math.floor(this.#random.float() * this.#workers.length)
    return this.#workers[index] as WorkerProcess
  }

  /** With whatever its clients and workers were about to do. */
  async #killServer(kill: () => Promise<void>): Promise<number> {
    const workers = this.#workers.flatMap((worker) => worker.workers)
    const { length } = await this.#site.held(workers)
    this.#history.write({ type: 'fault', kind: 'server kill' })
    await kill()
    return length
  }

  /** What it holds when it has just been stopped. */
  async #wound({ workers }: WorkerProcess, at: number): Promise<number> {
    const jobs = await this.#site.held(workers)
    this.#wounds.push({ at, jobs })
    return jobs.length
  }

  async #recovered({ name, workers }: WorkerProcess): Promise<void> {
    const jobs = this.#wounds.at(-1)?.jobs ?? []
    await until(`the jobs of ${name} to run elsewhere`, () => this.#site.isRecovered(workers, jobs))
  }

  async #report(rounds: number): Promise<KillReport> {
    const { store } = this.#site
    await this.#stopClients()
    await until('everything to be final', async () => {
      const queues = await store.admin.queues()
      return queues.every(({ counts }) => counts.ready + counts.scheduled + counts.running === 0)
    })
    const all = [...this.#workers, ...this.#gone]
    await Promise.all(this.#workers.splice(0).map((worker) => worker.stop()))
    this.#history.write({ type: 'phase', phase: 'end' })
    const found = await snapshot(store)
    this.#history.write(found)
    const { moves, broken, badEffects, repeatedEffects } = await this.#site.inspect()
    const events = this.#history.events(store.kind, moves)
    const verdict = check(events, BOUNDS)
    const states = new Map(found.jobs.map(({ id, state }) => [id, state]))
    const count = (state: string): number => found.jobs.filter((job) => job.state === state).length
    return {
      rounds,
      kills: verdict.counted.faults['kill'] ?? 0,
      freezes: verdict.counted.faults['freeze'] ?? 0,
      serverKills: verdict.counted.faults['server kill'] ?? 0,
      acked: this.#clients.reduce((sum, client) => sum + client.acked, 0),
      completed: count('completed'),
      dead: count('dead'),
      cancelled: count('cancelled'),
      lost: [...ackedIn(events)].filter((id) => !FINAL.has(states.get(id) ?? 'gone')).length,
      rescued: moves === null ? null : verdict.counted.rescued,
      staleSettlesRefused: all.reduce((sum, worker) => sum + worker.lost, 0),
      violations: [...broken, ...(verdict.violationCount === 0 ? [] : [failure(verdict, events).message])],
      badEffects,
      repeatedEffects,
      recoveriesMs: moves === null ? [] : this.#wounds.flatMap((wound) => recoveriesOf(wound, moves)),
    }
  }
}

const FINAL: ReadonlySet<string> = new Set(['completed', 'dead', 'cancelled'])

function ackedIn(events: readonly HistoryEvent[]): Set<string> {
  const acked = new Set<string>()
  for (const event of events) {
    if (event.type !== 'answer' || event.reply.kind !== 'enqueue') continue
    for (const { id, outcome } of event.reply.jobs) if (outcome === 'inserted') acked.add(id)
  }
  return acked
}

/** A job that was lost before waits longer each time, on purpose: that is not counted. */
function recoveriesOf({ at, jobs }: Wound, moves: readonly TimedEvent[]): number[] {
  return jobs.map(({ id, token }) => {
    const later = moves.filter((move) => move.type === 'move' && move.t > at && move.job === id)
    const back = later.find(
      (move) =>
        move.type === 'move' && (move.to === 'running' ? move.token !== token : FINAL.has(move.to ?? '')),
    )
    const rescued = later.find((move) => move.type === 'move' && move.by === 'rescue')
    const crashes = rescued?.type === 'move' ? rescued.crashes : 1
    const extraMs = 1_000 * (2 ** (crashes - 1) - 1)
    return back === undefined ? Infinity : back.t - at - extraMs
  })
}
