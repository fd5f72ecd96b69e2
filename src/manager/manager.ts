/**
 * Watches the workers of one holdfast(). While any runs, every 30 s: samples their counters, evaluates their health,
 * emits changes, renews their notes in the store, and runs the user's checks. It runs outside the workers: nothing here
 * can hold up a claim or a settle.
 */
import type { Core } from '../core/core.ts'
import { DEAD_LETTER_JOB } from '../job/dead-letter.ts'
import { declareHandler } from '../maintenance/dead-letters.ts'
import { Bell } from '../std/bell.ts'
import type { WorkOptions, WorkerSettings } from '../worker/options.ts'
import type { Worker } from '../worker/worker.ts'
import { HealthDesk } from './health.ts'
import { LoopLag } from './loop-lag.ts'
import { Member } from './member.ts'
import type { HealthSettings } from './options.ts'
import { Roster } from './roster.ts'
import { WorkerBook, type Startable } from './workers.ts'

/** Longer than the notes of workers live: a deploy may take a while. */
const HANDLER_ROUNDS = 10

interface Rounds {
  readonly bell: Bell
  over: boolean
  done: Promise<void>
}

export class Manager {
  readonly workers: WorkerBook
  readonly health: HealthDesk
  readonly #core: Core
  readonly #settings: HealthSettings
  readonly #lag = new LoopLag()
  readonly #roster: Roster
  #rounds: Rounds | undefined
  #closed = false

  constructor(
    core: Core,
    settings: HealthSettings,
    startWorker: (options: WorkOptions) => Promise<Startable>,
  ) {
    this.#core = core
    this.#settings = settings
    this.#roster = new Roster(core, settings.everyMs, this.#lag)
    this.workers = new WorkerBook({
      core,
      startWorker,
      isRunning: (id) => this.#roster.members.some((member) => member.id === id && !member.stopping),
      status: () => this.#roster.status(),
    })
    this.health = new HealthDesk(core, this.#roster, () => this.workers.missing())
  }

  /** Adds a started worker; returns a function to call when it has stopped. */
  join(worker: Worker, settings: WorkerSettings): () => Promise<void> {
    const thresholds = { ...this.#settings.thresholds, ...settings.thresholds }
    const member = new Member({ core: this.#core, worker, settings, thresholds })
    if (this.#closed) return () => Promise.resolve()
    this.#roster.add(member)
    this.#begin()
    return () => this.#leave(member)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.health.close()
    await Promise.all(this.#roster.members.map((member) => this.#leave(member)))
    await this.#end()
  }

  async #leave(member: Member): Promise<void> {
    await this.#roster.remove(member)
    if (this.#roster.members.length === 0) await this.#end()
  }

  #begin(): void {
    if (this.#rounds !== undefined) return
    const rounds: Rounds = { bell: new Bell(this.#core.clock), over: false, done: Promise.resolve() }
    this.#rounds = rounds
    this.#lag.start(this.#core.clock)
    rounds.done = this.#goRound(rounds)
  }

  async #end(): Promise<void> {
    const rounds = this.#rounds
    if (rounds === undefined) return
    this.#rounds = undefined
    this.#lag.stop()
    rounds.over = true
    rounds.bell.ring()
    await rounds.done
  }

  async #goRound(rounds: Rounds): Promise<void> {
    for (;;) {
      await rounds.bell.wait(this.#settings.everyMs)
      if (rounds.over) return
      this.#lag.nextRound()
      for (const member of this.#roster.members) member.sample()
      // Not awaited: a hanging check would hold up the notes, and a stop.
      void this.health.runChecks()
      await this.health.judgeWorkers()
      await Promise.all(this.#roster.members.map((member) => this.#roster.renew(member)))
      await this.#renewHandler()
    }
  }

  /** The dead-letter handler stays declared for as long as a worker runs it. */
  async #renewHandler(): Promise<void> {
    const handler = this.#roster.members.flatMap((member) => member.jobs.get(DEAD_LETTER_JOB) ?? [])[0]
    // The connection tells of an outage; the next round tries again.
    await declareHandler(this.#core, handler, HANDLER_ROUNDS * this.#settings.everyMs).catch(
      (error: unknown) => this.#core.connection.report('declare the handler of dead letters', error),
    )
  }
}
