/**
 * The life of a worker, top to bottom: start → claim → execute → settle → stop.
 *
 * One loop talks to the store. Each call settles what has finished and claims what there is room for; meanwhile
 * handlers run in their slots and ring the bell when they are done. Nothing is started on a lease that is not sure,
 * nothing is written for a lease that is lost, and what is claimed but not started soon is given back.
 */
import type { Core } from '../core/core.ts'
import type { LocalCancel, LocalWorker } from '../core/local-workers.ts'
import { readDuration } from '../job/duration.ts'
import type { Token } from '../job/ids.ts'
import type { Outcome } from '../job/settlement.ts'
import { Bell } from '../std/bell.ts'
import type { Duration } from '../std/duration.ts'
import type { Lease, WakeUp } from '../stores/store.ts'
import type { Attempt } from './attempt.ts'
import { Backlog } from './backlog.ts'
import { Backoff } from './backoff.ts'
import { Claimed } from './claimed.ts'
import { CallLoop } from './call-loop.ts'
import { exchange } from './exchange.ts'
import { healthOf, type WorkerHealth } from './health.ts'
import { Intake, type Claim } from './intake.ts'
import type { WorkerSettings } from './options.ts'
import { Pace } from './pace.ts'
import { Reporter } from './reporter.ts'
import { ABORT_GRACE_MS, Running } from './running.ts'
import { Session } from './session.ts'
import { Outbox, policyOf, settle, tellSettled } from './settling.ts'
import { Starter } from './starter.ts'
import { Tally } from './tally.ts'
import { watchUnhandledRejections } from './unhandled.ts'

export type { WorkerHealth }

/** What was claimed but not started after this long may be run sooner by somebody else. */
const GIVE_BACK_MS = 200
const EXHAUSTED_PAUSE_MS = 1_000

export class Worker implements LocalWorker {
  readonly tally = new Tally()
  readonly #core: Core
  readonly #settings: WorkerSettings
  readonly #session: Session
  readonly #intake: Intake
  readonly #reporter: Reporter
  readonly #pace: Pace
  readonly #backoff: Backoff
  readonly #calls: CallLoop
  /** Rung whenever stop() may have got what it waits for. */
  readonly #stopBell: Bell
  readonly #claimed: Claimed
  readonly #running: Running
  readonly #starter: Starter
  readonly #outbox = new Outbox()
  #phase: 'new' | 'running' | 'stopping' | 'stopped' = 'new'
  /** Given back since the stop began. */
  #released = 0
  #drainUntilMs = Infinity
  #loop: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #unsubscribe: (() => Promise<void>) | undefined
  #unwatch: (() => void) | undefined
  #leaveLocal: (() => void) | undefined

  constructor(core: Core, settings: WorkerSettings) {
    this.#core = core
    this.#settings = settings
    this.#pace = new Pace(core.clock, core.random, settings.pollMs)
    this.#backoff = new Backoff(core.clock, core.random)
    this.#calls = new CallLoop({
      clock: core.clock,
      size: () => this.#callSize(),
      idleMs: () => this.#idleMs(),
      call: () => this.#call(),
    })
    this.#stopBell = new Bell(core.clock)
    this.#reporter = new Reporter(core, () => this.#calls.ring())
    this.#running = new Running({
      core,
      settings,
      reporter: this.#reporter,
      onStarted: (attempt) => this.#session.started(attempt),
      onEnded: (attempt, outcome) => this.#ended(attempt, outcome),
      onGivenUp: (attempt, outcome) => {
        this.#conclude(attempt, outcome)
        this.#calls.ring()
      },
    })
    const backlog = new Backlog(settings.jobs, ({ name, queue }, resized) =>
      core.events.emit('batch.resized', { worker: this.id, job: name, queue, ...resized }),
    )
    this.#claimed = new Claimed(backlog, this.#running.attempts, settings.concurrency, () => this.#session)
    this.#starter = new Starter({
      core,
      slots: settings.concurrency,
      claimed: this.#claimed,
      running: this.#running,
      mayStart: () => this.#phase === 'running' && this.#session.sure,
      conclude: (attempt, outcome) => this.#conclude(attempt, outcome),
    })
    this.#intake = new Intake(settings.weights, settings.batchSize, core.clock.monotonicMs())
    this.#session = new Session({
      core,
      leaseMs: settings.leaseMs,
      callTimeoutMs: settings.callTimeoutMs,
      running: this.#running.attempts,
      openTokens: () => this.#claimed.openTokens(),
      onLost: (tokens) => this.#lose(tokens),
      onCancel: ({ token, position, reason }) =>
        this.#cancel((one) => one.token === token && one.position === position, reason) === 'running',
      onPaused: (queue, heardMs) => this.#giveBack(this.#claimed.takePaused(queue, heardMs)),
      onBeat: () => this.#starter.start(),
      atOnce: this.#claimed.atOnce,
      onReborn: (before, abandoned) =>
        core.events.emit('worker.reborn', { worker: this.id, before, abandoned }),
    })
  }

  get id(): string {
    return this.#session.worker
  }

  // ── start ──────────────────────────────────────────────────────────────────

  async start(): Promise<void> {
    // The session first: its heartbeat thread has a connection that can listen as well.
    await this.#session.start()
    try {
      this.#unsubscribe = await this.#core.connection.subscribe((hint) => this.#hear(hint))
    } catch (error) {
      await this.#session.stop()
      throw error
    }
    this.#leaveLocal = this.#core.localWorkers.join(this)
    this.#unwatch = watchUnhandledRejections()
    this.#phase = 'running'
    this.#pace.answered()
    this.#loop = this.#calls.run()
    const { name, weights, concurrency } = this.#settings
    const queues = [...weights.keys()]
    this.#core.events.emit('worker.started', { worker: this.id, name, queues, concurrency })
  }

  #hear(hint: WakeUp): void {
    if (hint.type === 'ready' && this.#intake.wakeUp(hint.queue)) this.#calls.ring()
    if (hint.type === 'cancel' && hint.worker === this.#session.worker) this.#session.beatNow()
    if (hint.type === 'paused') this.paused(hint.queue)
  }

  /** How much a call would carry, one way or the other. */
  #callSize(): number {
    return Math.max(this.#outbox.size, this.#nextClaim()?.request.limit ?? 0)
  }

  /** Until the next poll, until a batch has waited long enough or a job too long, or until a pause of the claims is over. */
  #idleMs(): number {
    const nowMs = this.#now()
    const backlogMs = this.#claimed.backlog.dueMs(nowMs, GIVE_BACK_MS)
    return Math.max(1, Math.min(this.#pace.nextMs, backlogMs) - nowMs)
  }

  async #call(): Promise<void> {
    const begunMs = this.#now()
    const polls = this.#pace.pollIsDue()
    if (polls) this.#intake.poll()
    this.#starter.start({ afterBreak: true })
    this.#giveBack(this.#claimed.backlog.takeStale(this.#now() - GIVE_BACK_MS))
    let left = this.#outbox.take()
    let claim: Claim | null = null
    try {
      // After the outbox was emptied, so that what a job reported goes along with its settle.
      const reports = this.#reporter.take()
      // Handlers that have just started and return at once free their slots first, so that the claim counts them.
      await Promise.resolve()
      claim = this.#nextClaim()
      if (left.length === 0 && reports.length === 0 && claim === null && !polls) return
      this.#intake.sent(claim)
      if (claim !== null) this.#session.news.claimSent()
      const answer = await exchange(this.#core, this.#session, left, claim?.request ?? null, reports)
      this.#outbox.answered(left)
      left = answer.left
      this.#claimed.closed(answer.settled.length)
      this.#pace.answered()
      this.tally.count(answer.settled, this.#pace.answeredMs)
      for (const one of answer.settled) tellSettled(this.#core, one.pending, one.answer)
      if (claim !== null && answer.claimed) this.#intake.answered(claim, answer.leases)
      for (const lease of answer.leases) this.#receive(lease, answer.sentMs)
      if (this.#claimed.stalled) this.#starter.start()
      if (left.length > 0) throw answer.failure
      this.#backoff.reset()
    } catch (error) {
      // The connection has told of it; here it only means: what was not settled is sent again, later.
      this.#outbox.putBack(left)
      this.#landed(claim)
      claim = null
      await this.#backoff.pause(begunMs, error)
    } finally {
      this.#landed(claim)
      this.#outbox.landed()
      this.#stopBell.ring()
    }
  }

  // ── claim ──────────────────────────────────────────────────────────────────

  #nextClaim(): Claim | null {
    if (this.#phase !== 'running' || this.#pace.paused) return null
    const slots = this.#settings.concurrency - this.#running.taken
    return this.#intake.next(slots, this.#claimed.backlog, this.#claimed.suspects === 0, this.#now())
  }

  #landed(claim: Claim | null): void {
    if (claim === null) return
    this.#intake.landed(claim)
    this.#session.news.claimLanded()
  }

  #receive(lease: Lease, askedMs: number): void {
    const { cancelled, paused } = this.#claimed.receive(lease, askedMs, this.#session, this.#now())
    for (const { attempt, reason } of cancelled) this.#conclude(attempt, { type: 'cancelled', reason })
    this.#giveBack(paused)
    if (this.#phase === 'running') this.#starter.start()
    else this.#giveBack(this.#claimed.backlog.takeAll())
  }

  /** See `LocalWorker`. */
  paused(queue: string): void {
    this.#session.notePaused(queue, this.#now())
  }

  /** Unstarted: the attempt is handed back, the job stands where it stood. */
  #giveBack(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.#conclude(attempt, { type: 'interrupted' })
    if (attempts.length > 0) this.#calls.ring()
  }

  // ── execute ────────────────────────────────────────────────────────────────

  #ended(attempt: Attempt, outcome: Outcome | null): void {
    this.#session.ended(attempt)
    this.#intake.noteFinished()
    if (outcome !== null) this.#conclude(attempt, outcome)
    this.#starter.start()
    this.#calls.ring()
    this.#stopBell.ring()
  }

  /** See `LocalWorker`. */
  cancelled(id: string, reason: string | null): LocalCancel {
    this.#session.news.cancelled(id, reason)
    return this.#cancel((one) => one.job.id === id, reason)
  }

  /** What has not started never does; a handler that runs is aborted. */
  #cancel(isMeant: (attempt: Attempt) => boolean, reason: string | null): LocalCancel {
    const attempt = this.#claimed.open().find(isMeant)
    if (attempt === undefined) return 'unknown'
    if (attempt.phase === 'waiting') {
      this.#claimed.backlog.keep((one) => one !== attempt)
      this.#conclude(attempt, { type: 'cancelled', reason })
      this.#calls.ring()
      return 'dropped'
    }
    if (attempt.abortedFor === undefined) {
      attempt.cancelReason = reason
      this.#running.abort(attempt, 'cancelled', reason ?? 'The job was cancelled.')
    }
    return 'running'
  }

  // ── settle ─────────────────────────────────────────────────────────────────

  /** Puts the outcome on its way to the store; the first outcome of an attempt is its only one. */
  #conclude(attempt: Attempt, outcome: Outcome): void {
    if (attempt.phase === 'settled' || attempt.phase === 'lost') return
    if (attempt.phase === 'waiting') this.#claimed.left()
    attempt.phase = 'settled'
    this.#noteClosed(attempt)
    if (outcome.type === 'interrupted') this.#released++
    if (outcome.type === 'failed' && outcome.kind === 'resources_exhausted') this.#slowDown(attempt)
    const policy = policyOf(this.#core, attempt, this.#settings.jobs)
    this.#outbox.add(settle(this.#core, attempt, outcome, policy))
  }

  #noteClosed(attempt: Attempt): void {
    if (attempt.job.crashes === 0) return
    this.#claimed.suspects--
    // While one was held, claims left suspects behind in queues that looked dry.
    this.#intake.poll()
  }

  #slowDown(attempt: Attempt): void {
    this.#pace.pause(EXHAUSTED_PAUSE_MS)
    const facts = { worker: this.id, pauseMs: EXHAUSTED_PAUSE_MS, job: attempt.job.name }
    this.#core.events.emit('worker.slowed', facts)
  }

  /** The leases are gone: abort what runs, and write nothing of it. Slots stay taken until the handlers return. */
  #lose(tokens: ReadonlySet<Token>): void {
    const lost = this.#claimed.open().filter((attempt) => tokens.has(attempt.token))
    for (const attempt of lost) {
      if (attempt.phase === 'running') this.#claimed.closed(1)
      attempt.phase = 'lost'
      this.#noteClosed(attempt)
      this.#running.abort(
        attempt,
        'lease_lost',
        'The lease was taken away: another worker runs this job by now.',
      )
      this.#core.events.emit('job.lost', attempt.end(attempt.runMs(this.#now())))
    }
    this.#claimed.backlog.keep((attempt) => attempt.phase === 'waiting')
    this.#session.forget(tokens)
  }

  health(): WorkerHealth {
    const lastPollMsAgo = this.#now() - this.#pace.answeredMs
    return healthOf(this.#settings, {
      isRunning: this.#phase === 'running',
      lastPollMsAgo,
      running: this.#running.attempts.size,
      waiting: this.#claimed.backlog.size,
      busy: this.#running.taken,
      stopping: this.#stopping !== undefined,
    })
  }

  // ── stop ───────────────────────────────────────────────────────────────────

  /** No new claims → drain to the deadline → abort → release → leave. Called again with less time, it hurries. */
  stop(options: { readonly drain?: Duration } = {}): Promise<void> {
    const { drain } = options
    const drainMs =
      drain === undefined ? this.#settings.graceMs : readDuration(drain, 'drain', { orZero: true })
    this.#drainUntilMs = Math.min(this.#drainUntilMs, this.#now() + drainMs)
    this.#stopBell.ring()
    this.#stopping ??= this.#shutDown()
    return this.#stopping
  }

  async #shutDown(): Promise<void> {
    if (this.#phase !== 'running') return
    this.#phase = 'stopping'
    this.#released = 0
    this.#core.events.emit('worker.stopping', { worker: this.id, running: this.#running.attempts.size })
    this.#giveBack(this.#claimed.backlog.takeAll())
    this.#calls.ring()
    const idle = (): boolean => this.#running.attempts.size === 0
    await this.#stopBell.until(idle, () => this.#drainUntilMs)
    for (const attempt of this.#running.attempts) attempt.stop('shutdown', 'The worker is shutting down.')
    const patienceMs = this.#now() + Math.min(ABORT_GRACE_MS, this.#settings.graceMs)
    await this.#stopBell.until(idle, () => patienceMs)
    for (const attempt of this.#claimed.open())
      this.#running.giveUp(attempt, attempt.abortedFor ?? 'shutdown')
    this.#calls.ring()
    const writtenByMs = this.#now() + 2 * this.#settings.callTimeoutMs
    const written = (): boolean => this.#outbox.isDone
    await this.#stopBell.until(written, () => writtenByMs)
    this.#phase = 'stopped'
    this.#calls.end()
    await this.#leave()
    this.#core.events.emit('worker.stopped', { worker: this.id, released: this.#released })
  }

  async #leave(): Promise<void> {
    this.#running.clear()
    this.#starter.stop()
    this.#unwatch?.()
    this.#leaveLocal?.()
    await Promise.all([this.#unsubscribe?.(), this.#loop])
    // What was said too late to be told.
    this.#reporter.take()
    await this.#session.stop()
  }

  #now(): number {
    return this.#core.clock.monotonicMs()
  }
}
