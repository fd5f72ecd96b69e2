/**
 * Three schedulers in real processes share many schedules of one second, and every tick is to be made up for. Whoever leads
 * is frozen for longer than its term, and comes back as one that still thinks it leads; or it is killed, and another is
 * started, which declares all schedules anew while they fire. Between the faults it is quiet, to see how late ticks are then.
 */
import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { JobId } from '../../../src/job/ids.ts'
import { seededRandom, type Random } from '../../../src/std/random.ts'
import type { Store } from '../../../src/stores/store.ts'
import type { FromScheduler } from './schedule-work.ts'
import { judgeTicks, type FiredTick, type Tick, type TickVerdict } from './tick-judge.ts'
import { pause, until } from '../../support/until.ts'
import { WorkerProcess } from './worker-process.ts'

/** The server that it happens on. */
export interface ScheduleSite {
  readonly url: string
  readonly store: Store
  /** Whether a leader that is frozen while it writes holds up all others, as with the one write lock of SQLite. */
  readonly frozenHoldsLock?: boolean
}

export interface ScheduleOptions {
  readonly schedules: number
  /** How long, or how often, leaders are frozen and killed; a fault that has begun is seen to its end. */
  readonly lasts: { readonly ms: number } | { readonly faults: number }
  readonly quietMs: { readonly least: number; readonly most: number }
  readonly seed?: number
  readonly onFault?: (fault: Fault) => void
}

export interface Fault {
  readonly what: 'freeze' | 'kill'
  readonly atMs: number
  /** Until another process said that it leads. */
  readonly vacantMs: number
}

export interface ScheduleReport extends TickVerdict {
  readonly freezes: number
  readonly kills: number
  readonly longestVacantMs: number
}

export const LATE_MS = 2_000
const EVERY_MS = 1_000
const SCHEDULERS = 3
const LEASE_MS = 6_000
const SLOTS = 10
/** As `maintenance.ts` and `leader.ts` derive them from the lease. */
const TERM_MS = LEASE_MS / 2
const ELECTION_MS = TERM_MS / 3
/** The term of the old leader, the next election, and a second to catch up. */
const WINDOW_MS = TERM_MS + ELECTION_MS + 1_000
/** Of a leader that holds up the others: beyond its term, and so short that they catch up within the window. */
const MOST_HELD_UP_MS = TERM_MS + ELECTION_MS
const MOST_FROZEN_LONGER_MS = 4_000
const FIRE_MS = 60_000
const WORK = fileURLToPath(new URL('schedule-work.ts', import.meta.url))

export async function scheduleSoak(site: ScheduleSite, options: ScheduleOptions): Promise<ScheduleReport> {
  const soak = new Soak(site, options)
  try {
    return await soak.run()
  } finally {
    await soak.close()
  }
}

class Soak {
  readonly #site: ScheduleSite
  readonly #options: ScheduleOptions
  readonly #random: Random
  readonly #schedules: readonly string[]
  readonly #told: Tick[] = []
  readonly #newest = new Map<string, number>()
  readonly #firing = new EventEmitter()
  readonly #faults: Fault[] = []
  #processes: WorkerProcess[] = []
  #leader: WorkerProcess | undefined
  #started = 0

  constructor(site: ScheduleSite, options: ScheduleOptions) {
    this.#site = site
    this.#options = options
    this.#random = seededRandom(options.seed ?? Math.floor(Math.random() * 2 ** 32))
    this.#schedules = Array.from({ length: options.schedules }, (_, index) => `tick-${index}`)
  }

  async run(): Promise<ScheduleReport> {
    await Promise.all(Array.from({ length: SCHEDULERS }, () => this.#start()))
    await this.#allFiredAfter(0)
    const fromMs = Date.now()
    while (this.#goesOn(fromMs)) {
      await this.#quiet()
      const fault = await (this.#faults.length % 2 === 0 ? this.#freeze() : this.#kill())
      this.#faults.push(fault)
      this.#options.onFault?.(fault)
    }
    await this.#quiet()
    const toMs = Date.now()
    await this.#allFiredAfter(toMs)
    await Promise.all(this.#processes.splice(0).map((process) => process.stop()))
    return this.#report(fromMs, toMs)
  }

  #goesOn(fromMs: number): boolean {
    const { lasts } = this.#options
    return 'ms' in lasts ? Date.now() < fromMs + lasts.ms : this.#faults.length < lasts.faults
  }

  async close(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.kill()))
  }

  async #start(): Promise<void> {
    const process: WorkerProcess = new WorkerProcess(`scheduler-${this.#started++}`, {
      jobs: WORK,
      url: this.#site.url,
      leaseMs: LEASE_MS,
      slots: SLOTS,
      env: { SOAK_SCHEDULES: this.#schedules.join(' ') },
      onScheduler: (message) => this.#hear(process, message),
    })
    this.#processes.push(process)
    await process.started()
  }

  #hear(process: WorkerProcess, message: FromScheduler): void {
    if (message.type === 'fired') {
      this.#told.push({ schedule: message.schedule, tick: message.tick })
      this.#newest.set(message.schedule, message.tick)
      this.#firing.emit('fired', process)
    } else if (message.type === 'elected') this.#leader = process
    else if (this.#leader === process) this.#leader = undefined
  }

  async #allFiredAfter(ms: number): Promise<void> {
    await until('every schedule to fire', () =>
      this.#schedules.every((schedule) => (this.#newest.get(schedule) ?? -1) > ms),
    )
  }

  async #quiet(): Promise<void> {
    const { least, most } = this.#options.quietMs
    await pause(least + this.#random.float() * (most - least))
  }

  async #freeze(): Promise<Fault> {
    const victim = await this.#caughtFiring()
    const atMs = Date.now()
    victim.signal('SIGSTOP')
    try {
      const vacant = this.#vacant(victim, atMs)
      const isHeldUp = this.#site.frozenHoldsLock === true && (await isLater(vacant, MOST_HELD_UP_MS))
      if (isHeldUp) return { what: 'freeze', atMs, vacantMs: Date.now() - atMs }
      const vacantMs = await vacant
      await pause(this.#random.float() * MOST_FROZEN_LONGER_MS)
      return { what: 'freeze', atMs, vacantMs }
    } finally {
      victim.signal('SIGCONT')
      await this.#windowOver(atMs)
    }
  }

  async #kill(): Promise<Fault> {
    const victim = await this.#caughtFiring()
    const atMs = Date.now()
    await victim.kill()
    this.#processes = this.#processes.filter((process) => process !== victim)
    const [vacantMs] = await Promise.all([this.#vacant(victim, atMs), this.#start()])
    await this.#windowOver(atMs)
    return { what: 'kill', atMs, vacantMs }
  }

  /**
   * Whoever leads, in the middle of firing: one that is frozen then has read what is due, and goes on by that when it thaws. Between two
   * rounds it would just find that it leads no more: a store that took each tick twice passed such freezes.
   */
  async #caughtFiring(): Promise<WorkerProcess> {
    await pause(EVERY_MS - (Date.now() % EVERY_MS))
    const [victim] = await once(this.#firing, 'fired', { signal: AbortSignal.timeout(FIRE_MS) })
    return victim as WorkerProcess
  }

  async #vacant(victim: WorkerProcess, atMs: number): Promise<number> {
    await until('another to lead', () => this.#leader !== undefined && this.#leader !== victim)
    return Date.now() - atMs
  }

  async #windowOver(atMs: number): Promise<void> {
    await pause(Math.max(0, atMs + WINDOW_MS - Date.now()))
  }

  async #report(fromMs: number, toMs: number): Promise<ScheduleReport> {
    const count = (what: Fault['what']): number => this.#faults.filter((fault) => fault.what === what).length
    const verdict = judgeTicks({
      schedules: this.#schedules,
      everyMs: EVERY_MS,
      fromMs,
      toMs,
      jobs: await firedIn(this.#site.store),
      told: this.#told,
      faultsAtMs: this.#faults.map(({ atMs }) => atMs),
      windowMs: WINDOW_MS,
    })
    return {
      ...verdict,
      freezes: count('freeze'),
      kills: count('kill'),
      longestVacantMs: Math.max(...this.#faults.map(({ vacantMs }) => vacantMs)),
    }
  }
}

/** Whether the work takes longer. If it does, what becomes of it does not matter. */
async function isLater(work: Promise<unknown>, ms: number): Promise<boolean> {
  const late = pause(ms).then(() => true)
  const done = work.then(() => false)
  done.catch(() => undefined)
  return Promise.race([late, done])
}

/** A job of a schedule has its name, and its id begins with the time of its tick. */
async function firedIn(store: Store): Promise<FiredTick[]> {
  const fired: FiredTick[] = []
  let after: JobId | null = null
  do {
    const page: Awaited<ReturnType<Store['admin']['list']>> = await store.admin.list({ limit: 1_000, after })
    for (const { id, name, createdAt } of page.jobs)
      fired.push({ schedule: name, tick: tickOf(id), firedAtMs: createdAt })
    after = page.next
  } while (after !== null)
  return fired
}

function tickOf(id: JobId): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}
