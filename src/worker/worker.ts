/**
 * The life of a worker, top to bottom: start → claim → execute → settle → stop.
 *
 * The driver talks to the store: each call settles what has finished and claims what there is room for. Meanwhile
 * handlers run in their slots. Nothing starts on a lease that is not sure, nothing is written for a lost lease, and
 * claimed jobs that don't start soon are released.
 */
import type { Core } from '../core/core.ts'
import type { AttemptCounters } from '../core/instrumentation.ts'
import type { LocalCancel, LocalWorker } from '../core/local-workers.ts'
import type { WakeUpListeners } from '../core/store-client.ts'
import type { Token } from '../job/ids.ts'
import type { Outcome } from '../job/settlement.ts'
import { Bell } from '../std/bell.ts'
import type { Lease } from '../stores/store.ts'
import { Attempt } from './attempt.ts'
import { Attempts } from './attempts.ts'
import { Backlog } from './backlog.ts'
import { Driver } from './driver.ts'
import { healthOf, type WorkerHealth } from './health.ts'
import { readStopOptions, type StopOptions, type WorkerSettings } from './options.ts'
import { lookEverywhere, newLoopState, wokenUp, type LoopState, type Work } from './plan.ts'
import { Session } from './session.ts'
import { retryOfUnknownJobs, type PendingSettle } from './settling.ts'
import { Starts } from './starts.ts'
import { watchUnhandledRejections } from './unhandled.ts'

export type { WorkerHealth }

/** How long a handler may ignore its abort signal before the worker gives up on it. Its slot stays taken until it returns. */
const ABORT_GRACE_MS = 5_000
const EXHAUSTED_PAUSE_MS = 1_000

export class Worker implements LocalWorker {
  readonly #core: Core
  readonly #settings: WorkerSettings
  readonly #state: LoopState
  readonly #attempts: Attempts
  readonly #backlog: Backlog
  readonly #session: Session
  readonly #starts: Starts
  readonly #driver: Driver
  /** Rung when something has happened that stop() may wait for. */
  readonly #stopBell: Bell
  #phase: 'new' | 'running' | 'stopping' | 'stopped' = 'new'
  /** Open jobs that lost a worker before. */
  #suspects = 0
  /** Released since the stop began. */
  #released = 0
  #drainUntilMs = Infinity
  #loop: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #unsubscribe: (() => Promise<void>) | undefined
  #unwatch: (() => void) | undefined
  #leaveLocal: (() => void) | undefined

  constructor(core: Core, settings: WorkerSettings) {
    const { clock, events } = core
    const { jobs, weights } = settings
    this.#core = core
    this.#settings = settings
    this.#state = newLoopState(weights, settings, clock.monotonicMs())
    this.#stopBell = new Bell(clock)
    this.#backlog = new Backlog(jobs, ({ name, queue }, resized) =>
      events.emit('batch.resized', { worker: this.id, job: name, queue, ...resized }),
    )
    this.#attempts = this.#newAttempts()
    this.#starts = this.#newStarts()
    this.#session = this.#newSession()
    this.#driver = this.#newDriver()
  }

  get id(): string {
    return this.#session.worker
  }

  get counters(): Readonly<AttemptCounters> {
    return this.#driver.counters
  }

  // ── start ──────────────────────────────────────────────────────────────────

  async start(): Promise<void> {
    // The session first: its heartbeat thread has a connection that can listen as well.
    await this.#session.start()
    try {
      this.#unsubscribe = await this.#core.store.subscribe(this.#wakeUps)
    } catch (error) {
      await this.#session.stop()
      throw error
    }
    this.#leaveLocal = this.#core.localWorkers.join(this)
    this.#unwatch = watchUnhandledRejections()
    this.#phase = 'running'
    this.#state.answeredMs = this.#now()
    this.#loop = this.#driver.run()
    const { name, weights, concurrency } = this.#settings
    const queues = [...weights.keys()]
    this.#core.events.emit('worker.started', { worker: this.id, name, queues, concurrency })
  }

  readonly #wakeUps: WakeUpListeners = {
    ready: ({ queue }) => {
      if (wokenUp(this.#state, queue)) this.#driver.ring()
    },
    cancel: ({ worker }) => {
      if (worker === this.#session.worker) this.#session.beatNow()
    },
    paused: ({ queue }) => this.paused(queue),
    leased: (hint) => {
      const handed = this.#session.heardLeased(hint)
      if (handed !== null) this.#driver.takeHanded(handed)
    },
  }

  // ── claim ──────────────────────────────────────────────────────────────────

  #work(): Omit<Work, 'settles' | 'reportsDue'> {
    return {
      claims: this.#phase === 'running',
      freeSlots: this.#settings.concurrency - this.#attempts.slotsTaken,
      inLine: this.#backlog.inLine,
      oldestMs: this.#backlog.first?.receivedMs,
      batchRoom: this.#backlog.batchRoom(),
      batchReadyMs: this.#backlog.batchReadyMs(),
      holdsSuspect: this.#suspects > 0,
      takesOffers: !this.#backlog.gathers && this.#session.unknownJobs === 0,
    }
  }

  /** Takes in what a claim has brought. What was cancelled or paused meanwhile must not start. */
  #receive(lease: Lease, askedMs: number): void {
    const nowMs = this.#now()
    const { worker } = this.#session
    const kept: Attempt[] = []
    const paused: Attempt[] = []
    lease.jobs.forEach((job, position) => {
      const attempt = new Attempt(job, lease, position, worker, nowMs, askedMs)
      if (job.crashes > 0) this.#suspects++
      const notice = this.#session.heardOf(attempt)
      if (notice === null) kept.push(attempt)
      else if (notice.type === 'paused') paused.push(attempt)
      else this.#conclude(attempt, { type: 'cancelled', reason: notice.reason })
    })
    this.#backlog.add(lease.queue, kept)
    this.#giveBack(paused)
  }

  /** A lease that could not be taken in. None of its jobs has started: that is only done once all leases are in. */
  #disown(lease: Lease): void {
    this.#backlog.takeIf(({ token }) => token === lease.token)
    this.#suspects = this.#open().filter(({ job }) => job.crashes > 0).length
    this.#session.disown(lease)
  }

  /** An answer is taken in: it may have brought jobs or made room. */
  #startOrGiveBack(): void {
    if (this.#phase === 'running') this.#starts.start()
    else this.#giveBack(this.#backlog.takeAll())
  }

  /** See `LocalWorker`. */
  paused(queue: string): void {
    this.#session.notePaused(queue, this.#now())
  }

  /** What was claimed after the pause was heard was claimed after the queue was resumed. */
  #takePaused(queue: string, heardMs: number): Attempt[] {
    return this.#backlog.takeIf((one) => one.job.queue === queue && one.askedMs <= heardMs)
  }

  /** Uses no attempt, and the job keeps its place. */
  #giveBack(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.#conclude(attempt, { type: 'interrupted' })
    if (attempts.length > 0) this.#driver.ring()
  }

  // ── execute ────────────────────────────────────────────────────────────────

  #returned(attempt: Attempt, outcome: Outcome | null): void {
    this.#state.finished++
    if (outcome !== null) this.#conclude(attempt, outcome)
    this.#driver.ring()
    if (this.#stopping !== undefined) this.#stopBell.ring()
    this.#starts.start()
  }

  /** See `LocalWorker`. */
  cancelled(id: string, reason: string | null): LocalCancel {
    this.#session.noteCancelled(id, reason)
    return this.#cancel((one) => one.job.id === id, reason)
  }

  /** A job that has not started never does; a handler that runs is aborted. */
  #cancel(isMeant: (attempt: Attempt) => boolean, reason: string | null): LocalCancel {
    const attempt = this.#open().find(isMeant)
    if (attempt === undefined) return 'unknown'
    if (attempt.phase === 'waiting') {
      this.#backlog.takeIf((one) => one === attempt)
      this.#conclude(attempt, { type: 'cancelled', reason })
      this.#driver.ring()
      return 'dropped'
    }
    this.#attempts.cancel(attempt, reason)
    return 'running'
  }

  /** All that has no outcome yet. */
  #open(): Attempt[] {
    return [...this.#backlog.all(), ...this.#attempts.running].filter(
      ({ phase }) => phase === 'waiting' || phase === 'running',
    )
  }

  /** Leases that must still stand. */
  #openTokens(): Set<Token> {
    return new Set(this.#open().flatMap(({ token, commits }) => (commits ? [] : [token])))
  }

  // ── settle ─────────────────────────────────────────────────────────────────

  /** The first outcome of an attempt is its only one. */
  #conclude(attempt: Attempt, outcome: Outcome): void {
    const wasWaiting = attempt.phase === 'waiting'
    const pending = this.#attempts.conclude(attempt, outcome)
    if (pending === null) return
    if (wasWaiting) this.#starts.left()
    this.#settle(pending)
  }

  /** Puts a settlement on its way to the store. */
  #settle(pending: PendingSettle): void {
    const { attempt, outcome } = pending
    this.#driver.settle(pending)
    this.#noteClosed(attempt)
    if (outcome.type === 'interrupted') this.#released++
    if (outcome.type === 'failed' && outcome.kind === 'resources_exhausted') this.#slowDown(attempt)
  }

  #noteClosed(attempt: Attempt): void {
    if (attempt.job.crashes === 0) return
    this.#suspects--
    // While one was held, claims left suspects behind in queues that looked dry.
    lookEverywhere(this.#state)
  }

  #slowDown(attempt: Attempt): void {
    this.#state.noClaimsUntilMs = this.#now() + EXHAUSTED_PAUSE_MS
    const facts = { worker: this.id, pauseMs: EXHAUSTED_PAUSE_MS, job: attempt.job.name }
    this.#core.events.emit('worker.slowed', facts)
  }

  /** The leases are gone. Slots stay taken until the handlers return. */
  #lose(tokens: ReadonlySet<Token>): void {
    const waiting = this.#backlog.takeIf(({ token }) => tokens.has(token))
    const wereRunning = [...this.#attempts.running].filter(({ phase }) => phase === 'running')
    const lost = this.#attempts.lose([...waiting, ...wereRunning], tokens)
    this.#starts.closed(lost.filter(({ startedMs }) => startedMs !== undefined).length)
    for (const attempt of lost) this.#noteClosed(attempt)
    this.#session.forget(tokens)
  }

  health(): WorkerHealth {
    return healthOf(this.#settings, {
      isRunning: this.#phase === 'running',
      lastPollMsAgo: this.#now() - this.#state.answeredMs,
      running: this.#attempts.running.size,
      waiting: this.#backlog.size,
      busy: this.#attempts.slotsTaken,
      stopping: this.#stopping !== undefined,
    })
  }

  // ── stop ───────────────────────────────────────────────────────────────────

  /** No new claims → drain to the deadline → abort → release → leave. Called again with less time, it hurries. */
  stop(options?: StopOptions): Promise<void> {
    const { drain: drainMs = this.#settings.graceMs } = readStopOptions(options, 'worker.stop()')
    this.#drainUntilMs = Math.min(this.#drainUntilMs, this.#now() + drainMs)
    this.#stopBell.ring()
    this.#stopping ??= this.#shutDown()
    return this.#stopping
  }

  async #shutDown(): Promise<void> {
    if (this.#phase !== 'running') return
    const { running } = this.#attempts
    this.#phase = 'stopping'
    this.#released = 0
    this.#core.events.emit('worker.stopping', { worker: this.id, running: running.size })
    this.#giveBack(this.#backlog.takeAll())
    this.#driver.ring()
    const isIdle = (): boolean => running.size === 0
    await this.#stopBell.until(isIdle, () => this.#drainUntilMs)
    for (const attempt of running) this.#attempts.interrupt(attempt)
    const patienceMs = this.#now() + Math.min(ABORT_GRACE_MS, this.#settings.graceMs)
    await this.#stopBell.until(isIdle, () => patienceMs)
    for (const attempt of this.#open()) this.#attempts.giveUp(attempt)
    this.#driver.ring()
    const writtenByMs = this.#now() + 2 * this.#settings.callTimeoutMs
    await this.#stopBell.until(
      () => this.#driver.isDone,
      () => writtenByMs,
    )
    this.#phase = 'stopped'
    this.#driver.end()
    await this.#leave()
    this.#core.events.emit('worker.stopped', { worker: this.id, released: this.#released })
  }

  async #leave(): Promise<void> {
    this.#attempts.clear()
    this.#unwatch?.()
    this.#leaveLocal?.()
    await Promise.all([this.#unsubscribe?.(), this.#loop])
    // Reports that came too late to be sent; this also ends their timer.
    this.#attempts.takeReports()
    await this.#session.stop()
  }

  // ── wiring ─────────────────────────────────────────────────────────────────

  #newAttempts(): Attempts {
    const { jobs } = this.#settings
    return new Attempts({
      core: this.#core,
      definitionOf: (name) => jobs.get(name),
      retryOfUnknown: retryOfUnknownJobs(this.#core),
      graceMs: ABORT_GRACE_MS,
      loop: {
        started: (attempt) => this.#session.loop.started(attempt),
        ended: (attempt) => this.#session.loop.ended(attempt),
      },
      onReturned: (attempt, outcome) => this.#returned(attempt, outcome),
      onGivenUp: (pending) => {
        this.#settle(pending)
        this.#driver.ring()
      },
      onReportsDue: () => this.#driver.reportsDue(),
    })
  }

  #newStarts(): Starts {
    return new Starts({
      core: this.#core,
      slots: this.#settings.concurrency,
      backlog: this.#backlog,
      attempts: this.#attempts,
      session: () => this.#session,
      isOpen: () => this.#phase === 'running',
      conclude: (attempt, outcome) => this.#conclude(attempt, outcome),
      onTurnNeeded: () => this.#driver.ring(),
    })
  }

  #newSession(): Session {
    const { leaseMs, callTimeoutMs } = this.#settings
    return new Session({
      core: this.#core,
      leaseMs,
      callTimeoutMs,
      running: this.#attempts.running,
      openTokens: () => this.#openTokens(),
      onLost: (tokens) => this.#lose(tokens),
      onCancel: ({ token, position, reason }) =>
        this.#cancel((one) => one.token === token && one.position === position, reason) === 'running',
      onPaused: (queue, heardMs) => this.#giveBack(this.#takePaused(queue, heardMs)),
      onBeat: () => this.#starts.start(),
      atOnce: this.#starts.atOnce,
    })
  }

  #newDriver(): Driver {
    return new Driver({
      core: this.#core,
      state: this.#state,
      session: this.#session,
      work: () => this.#work(),
      takeReports: () => this.#attempts.takeReports(),
      onTurn: () => this.#starts.startAfterTurn(),
      giveBack: (staleMs) => this.#giveBack(this.#backlog.takeStale(staleMs)),
      onSettled: (count) => this.#starts.closed(count),
      onLease: (lease, askedMs) => this.#receive(lease, askedMs),
      onLeaseFailed: (lease) => this.#disown(lease),
      onAnswer: () => this.#startOrGiveBack(),
      onCallEnded: () => this.#stopBell.ring(),
    })
  }

  #now(): number {
    return this.#core.clock.monotonicMs()
  }
}
