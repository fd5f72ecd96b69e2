/**
 * The life of a worker, top to bottom: start → claim → execute → settle → stop.
 *
 * One loop talks to the store. Each call settles what has finished and claims what there is room for; meanwhile
 * handlers run in their slots and ring the bell when they are done. Nothing is started on a lease that is not sure,
 * nothing is written for a lease that is lost, and what is claimed but not started soon is given back.
 */
import type { Core } from '../client/core.ts'
import type { AbortWhy } from '../errors.ts'
import { readDuration } from '../job/duration.ts'
import type { Token } from '../job/ids.ts'
import { toError, type Outcome } from '../job/settlement.ts'
import { Bell } from '../std/bell.ts'
import type { Duration } from '../std/duration.ts'
import type { CancelNotice, Lease, WakeUp } from '../stores/store.ts'
import { Attempt } from './attempt.ts'
import { Backlog, type Gathered } from './backlog.ts'
import { Backoff } from './backoff.ts'
import { BatchGroup } from './batch-group.ts'
import { throughBatch } from './through-batch.ts'
import { CallLoop } from './call-loop.ts'
import { batchFunction, execute, lateOutcome, outcomeOfAbort } from './execute.ts'
import type { WorkerHealth } from './health.ts'
import { Intake, type Claim } from './intake.ts'
import type { WorkerSettings } from './options.ts'
import { Pace } from './pace.ts'
import { Reporter } from './reporter.ts'
import { Session } from './session.ts'
import { Outbox, policyOf, settle, tellSettled, timeoutOf } from './settling.ts'
import { Tally } from './tally.ts'
import { Timeouts } from './timeouts.ts'
import { watchUnhandledRejections } from './unhandled.ts'

export type { WorkerHealth }

/** A handler that ignores its abort is given up after this long; its slot stays taken until it returns. */
const ABORT_GRACE_MS = 5_000
/** What was claimed but not started after this long may be run sooner by somebody else. */
const GIVE_BACK_MS = 200
const EXHAUSTED_PAUSE_MS = 1_000

export class Worker {
  readonly tally = new Tally()
  readonly #core: Core
  readonly #settings: WorkerSettings
  readonly #session: Session
  readonly #intake: Intake
  readonly #reporter: Reporter
  readonly #timeouts: Timeouts
  readonly #pace: Pace
  readonly #backoff: Backoff
  readonly #calls: CallLoop
  /** Rung whenever stop() may have got what it waits for. */
  readonly #stopBell: Bell
  readonly #backlog: Backlog
  readonly #running = new Set<Attempt>()
  /** Slots in use: a batch takes one, however many jobs are in it. */
  #taken = 0
  readonly #outbox = new Outbox()
  #suspectsHeld = 0
  #phase: 'new' | 'running' | 'stopping' | 'stopped' = 'new'
  /** Given back since the stop began. */
  #released = 0
  #drainUntilMs = Infinity
  #loop: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #unsubscribe: (() => Promise<void>) | undefined
  #unwatch: (() => void) | undefined

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
    this.#backlog = new Backlog(settings.jobs, ({ name, queue }, resized) =>
      core.events.emit('batch.resized', { worker: this.id, job: name, queue, ...resized }),
    )
    this.#intake = new Intake(settings.weights, settings.batchSize, core.clock.monotonicMs())
    this.#reporter = new Reporter(core.clock, core.events, () => this.#calls.ring())
    this.#timeouts = new Timeouts(core.clock, this.#running, (attempt) => this.#overdue(attempt))
    this.#session = new Session({
      core,
      leaseMs: settings.leaseMs,
      callTimeoutMs: settings.callTimeoutMs,
      running: this.#running,
      openTokens: () => new Set(this.#open().map((attempt) => attempt.token)),
      onLost: (tokens) => this.#lose(tokens),
      onCancel: (notice) => this.#cancel(notice),
      onReborn: (before, abandoned) =>
        core.events.emit('worker.reborn', { worker: this.id, before, abandoned }),
    })
  }

  get id(): string {
    return this.#session.worker
  }

  // ── start ──────────────────────────────────────────────────────────────────

  async start(): Promise<void> {
    this.#unsubscribe = await this.#core.connection.subscribe((hint) => this.#hear(hint))
    try {
      await this.#session.start()
    } catch (error) {
      await this.#unsubscribe()
      throw error
    }
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
  }

  /** How much a call would carry, one way or the other. */
  #callSize(): number {
    return Math.max(this.#outbox.size, this.#nextClaim()?.request.limit ?? 0)
  }

  /** Until the next poll, until a batch has waited long enough or a job too long, or until a pause of the claims is over. */
  #idleMs(): number {
    const nowMs = this.#now()
    const backlogMs = this.#backlog.dueMs(nowMs, GIVE_BACK_MS)
    return Math.max(1, Math.min(this.#pace.nextMs, backlogMs) - nowMs)
  }

  async #call(): Promise<void> {
    const begunMs = this.#now()
    const polls = this.#pace.pollIsDue()
    if (polls) this.#intake.poll()
    if (this.#phase === 'running') this.#startWaiting()
    this.#giveBack(this.#backlog.takeStale(this.#now() - GIVE_BACK_MS))
    const settles = this.#outbox.take()
    try {
      await this.#session.report(this.#reporter.take())
      const claim = this.#nextClaim()
      if (settles.length === 0 && claim === null && !polls) return
      this.#intake.sent(claim)
      const requests = settles.map((pending) => pending.request)
      const answer = await this.#session
        .cycle(requests, claim?.request ?? null)
        .finally(() => this.#intake.landed(claim))
      this.#backoff.reset()
      this.#pace.answered()
      this.tally.count(settles, answer.settled, this.#pace.answeredMs)
      settles.forEach((pending, index) => tellSettled(this.#core, pending, answer.settled[index] ?? 'lost'))
      if (claim !== null && answer.alive) this.#intake.answered(claim, answer.leases)
      for (const lease of answer.leases) this.#receive(lease)
    } catch {
      // The connection has told of the outage; here it only means: the same settles again, later.
      this.#outbox.putBack(settles)
      await this.#backoff.pause(begunMs)
    } finally {
      this.#outbox.landed()
      this.#stopBell.ring()
    }
  }

  // ── claim ──────────────────────────────────────────────────────────────────

  #nextClaim(): Claim | null {
    if (this.#phase !== 'running' || this.#pace.paused) return null
    const slots = this.#settings.concurrency - this.#taken
    return this.#intake.next(slots, this.#backlog, this.#suspectsHeld === 0, this.#now())
  }

  #receive(lease: Lease): void {
    const { worker } = this.#session
    const nowMs = this.#now()
    const attempts = lease.jobs.map((job, position) => new Attempt(job, lease, position, worker, nowMs))
    for (const { job } of attempts) if (job.crashes > 0) this.#suspectsHeld++
    this.#backlog.add(lease.queue, attempts)
    if (this.#phase === 'running') this.#startWaiting()
    else this.#giveBack(this.#backlog.takeAll())
  }

  /** Unstarted: the attempt is handed back, the job stands where it stood. */
  #giveBack(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.#conclude(attempt, { type: 'interrupted' })
  }

  // ── execute ────────────────────────────────────────────────────────────────

  #startWaiting(): void {
    while (this.#backlog.size > 0 && this.#taken < this.#settings.concurrency && this.#session.sure) {
      const next = this.#backlog.next(this.#now())
      if (next === undefined) return
      if (!(next instanceof Attempt)) this.#startBatch(next)
      else if (!this.#expire(next)) this.#start(next)
    }
  }

  /** Whether it is too late for this one: then it is over. */
  #expire(attempt: Attempt): boolean {
    const outcome = lateOutcome(attempt, this.#now())
    if (outcome !== null) this.#conclude(attempt, outcome)
    return outcome !== null
  }

  #startBatch({ definition, size, attempts: gathered }: Gathered): void {
    const attempts = gathered.filter((attempt) => !this.#expire(attempt))
    if (attempts.length === 0) return
    const { clock } = this.#core
    const run = batchFunction(definition)
    const batch = new BatchGroup({ run, clock, size: attempts.length, onReturned: (ms) => size.ended(ms) })
    for (const attempt of attempts) {
      attempt.batch = batch
      this.#start(attempt)
    }
  }

  #start(attempt: Attempt): void {
    const nowMs = this.#now()
    attempt.begin(nowMs, timeoutOf(this.#core, attempt.job, this.#settings.jobs.get(attempt.job.name)))
    // The first of a batch takes the slot for all of them.
    if (attempt.batch?.begun() ?? true) this.#taken++
    this.#running.add(attempt)
    this.#session.started(attempt)
    this.#timeouts.set(attempt, nowMs + attempt.timeoutMs)
    const { events } = this.#core
    if (events.has('job.started')) events.emit('job.started', { ...attempt.facts, waitMs: attempt.waitMs })
    if (attempt.batch === undefined) void this.#execute(attempt)
    else throughBatch(this.#core, attempt, this.#settings.jobs, this.#reporter, this.#ended)
  }

  async #execute(attempt: Attempt): Promise<void> {
    this.#ended(attempt, await execute(this.#core, attempt, this.#settings.jobs, this.#reporter))
  }

  readonly #ended = (attempt: Attempt, outcome: Outcome | null): void => {
    attempt.returned((late) =>
      this.#core.events.emit('job.unhandled', { ...attempt.facts, error: toError(late) }),
    )
    this.#running.delete(attempt)
    if (attempt.batch?.ended(attempt) ?? true) this.#taken--
    this.#session.ended(attempt)
    this.#intake.noteFinished()
    if (outcome !== null) this.#conclude(attempt, outcome)
    if (this.#phase === 'running') this.#startWaiting()
    this.#calls.ring()
    this.#stopBell.ring()
  }

  /** Strikes twice: first the timeout, which aborts; then, if the handler goes on, the end of our patience. */
  #overdue(attempt: Attempt): void {
    const why = attempt.abortedFor
    if (why === undefined)
      this.#abort(attempt, 'timeout', `The attempt ran longer than ${attempt.timeoutMs} ms.`)
    else this.#giveUp(attempt, why)
  }

  #abort(attempt: Attempt, why: AbortWhy, message: string): void {
    attempt.stop(why, message)
    this.#timeouts.set(attempt, this.#now() + ABORT_GRACE_MS)
  }

  /** The handler goes on although it was told to end: the job need not wait for it, only its slot does. */
  #giveUp(attempt: Attempt, why: AbortWhy): void {
    this.#core.events.emit('job.stuck', { ...attempt.facts, why })
    this.#conclude(attempt, outcomeOfAbort(attempt))
    this.#calls.ring()
  }

  #cancel({ token, position, reason }: CancelNotice): void {
    const attempt = this.#open().find((one) => one.token === token && one.position === position)
    if (attempt === undefined || attempt.abortedFor !== undefined) return
    attempt.cancelReason = reason
    if (attempt.phase === 'waiting') {
      this.#backlog.keep((one) => one !== attempt)
      this.#conclude(attempt, { type: 'cancelled', reason })
      this.#calls.ring()
    } else {
      this.#abort(attempt, 'cancelled', reason ?? 'The job was cancelled.')
    }
  }

  // ── settle ─────────────────────────────────────────────────────────────────

  /** Puts the outcome on its way to the store; the first outcome of an attempt is its only one. */
  #conclude(attempt: Attempt, outcome: Outcome): void {
    if (attempt.phase === 'settled' || attempt.phase === 'lost') return
    attempt.phase = 'settled'
    this.#noteClosed(attempt)
    if (outcome.type === 'interrupted') this.#released++
    if (outcome.type === 'failed' && outcome.kind === 'resources_exhausted') this.#slowDown(attempt)
    const policy = policyOf(this.#core, attempt, this.#settings.jobs)
    this.#outbox.add(settle(this.#core, attempt, outcome, policy))
  }

  #noteClosed(attempt: Attempt): void {
    if (attempt.job.crashes === 0) return
    this.#suspectsHeld--
    // While one was held, claims left suspects behind in queues that looked dry.
    this.#intake.poll()
  }

  #slowDown(attempt: Attempt): void {
    this.#pace.pause(EXHAUSTED_PAUSE_MS)
    const facts = { worker: this.id, pauseMs: EXHAUSTED_PAUSE_MS, job: attempt.job.name }
    this.#core.events.emit('worker.slowed', facts)
  }

  #open(): Attempt[] {
    return [...this.#backlog.all(), ...this.#running].filter(
      (one) => one.phase === 'waiting' || one.phase === 'running',
    )
  }

  /** The leases are gone: abort what runs, and write nothing of it. Slots stay taken until the handlers return. */
  #lose(tokens: ReadonlySet<Token>): void {
    const lost = this.#open().filter((attempt) => tokens.has(attempt.token))
    for (const attempt of lost) {
      attempt.phase = 'lost'
      this.#noteClosed(attempt)
      this.#abort(attempt, 'lease_lost', 'The lease was taken away: another worker runs this job by now.')
      this.#core.events.emit('job.lost', attempt.end(attempt.runMs(this.#now())))
    }
    this.#backlog.keep((attempt) => attempt.phase === 'waiting')
    this.#session.forget(tokens)
  }

  health(): WorkerHealth {
    const { pollMs, callTimeoutMs, concurrency } = this.#settings
    const lastPollMsAgo = this.#now() - this.#pace.answeredMs
    return {
      healthy: this.#phase === 'running' && lastPollMsAgo <= 2 * pollMs + callTimeoutMs,
      lastPollMsAgo,
      running: this.#running.size,
      waiting: this.#backlog.size,
      slots: concurrency,
      busy: this.#taken,
      stopping: this.#stopping !== undefined,
    }
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
    this.#core.events.emit('worker.stopping', { worker: this.id, running: this.#running.size })
    this.#giveBack(this.#backlog.takeAll())
    this.#calls.ring()
    const idle = (): boolean => this.#running.size === 0
    await this.#stopBell.until(idle, () => this.#drainUntilMs)
    for (const attempt of this.#running) attempt.stop('shutdown', 'The worker is shutting down.')
    const patienceMs = this.#now() + Math.min(ABORT_GRACE_MS, this.#settings.graceMs)
    await this.#stopBell.until(idle, () => patienceMs)
    for (const attempt of this.#open()) this.#giveUp(attempt, attempt.abortedFor ?? 'shutdown')
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
    this.#timeouts.clear()
    this.#unwatch?.()
    await Promise.all([this.#unsubscribe?.(), this.#loop])
    // What was said too late to be told.
    this.#reporter.take()
    await this.#session.stop()
  }

  #now(): number {
    return this.#core.clock.monotonicMs()
  }
}
