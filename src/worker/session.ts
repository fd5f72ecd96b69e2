/**
 * A worker's registration with the store: its incarnation, its heartbeats, and how sure it is of its leases. The local
 * deadline counts from when a renewal was sent, not from when its answer came, so that a process that was frozen in
 * between does not trust a lease that was taken away meanwhile. A job starts only within a `StartWindow` of asking the
 * store about it, for the same reason.
 */
import type { Registration } from '../core/worker-calls.ts'
import { isLasting, isRefusal, isStoreFailure } from '../errors.ts'
import type { Token, WorkerId } from '../job/ids.ts'
import { Bell } from '../std/bell.ts'
import {
  START_WITHIN_MS,
  type CancelNotice,
  type Lease,
  type LeasePosition,
  type Pulse,
  type SettleAnswer,
  type SettleRequest,
} from '../stores/store.ts'
import type { Attempt } from './attempt.ts'
import { EarlyNotices, type EarlyNotice } from './early-notices.ts'
import { LoopWatch } from './loop-watch.ts'
import { Offers, type HandedLease, type LeasedHint } from './offers.ts'
import type { SessionAnswer, SessionParts, SessionRequest } from './session-parts.ts'
import { StartWindow } from './start-window.ts'
import { UndeliveredLeases } from './undelivered.ts'
import { tellWorkerError } from './worker-error.ts'

const LOST_BEAT_RETRY_MS = 500

export class Session {
  readonly #parts: SessionParts
  readonly #bell: Bell
  #worker: WorkerId
  /** Whether the store has been told of this incarnation. */
  #registered = false
  #sureUntilMs = 0
  /** When the newest heartbeat that was answered had been sent. */
  #lastBeatMs = 0
  /** Heartbeats sent so far. */
  #beats = 0
  readonly #startWindow: StartWindow
  /** Renews the lease while this loop is blocked, if the store can. */
  #pulse: Pulse | null = null
  /** Notified of every handler that starts or returns. */
  readonly loop: LoopWatch
  #stopped = false
  #claimsUnderWay = 0
  /** Cancels and pauses that were heard while a claim was under way. */
  #earlyNotices: EarlyNotices | undefined
  #beating: Promise<void> | undefined
  /** One at a time, so that what they tell the store arrives in order. */
  #renewing: Promise<void> | undefined
  /** Cancels that took effect, as far as the store has not answered that it knows. */
  #heard: readonly LeasePosition[] = []
  /** Leases that this process knows of, with how many of their settles are still unanswered. */
  readonly #known = new Map<Token, number>()
  readonly #undelivered: UndeliveredLeases
  readonly #offers = new Offers()
  /** Most jobs that may be leased to this worker without its knowledge. */
  unknownJobs = 0

  constructor(parts: SessionParts) {
    this.#parts = parts
    this.#worker = parts.core.ids.worker()
    this.#bell = new Bell(parts.core.clock)
    this.#undelivered = new UndeliveredLeases(parts.callTimeoutMs)
    this.#startWindow = new StartWindow(parts.core, this.#worker, parts.callTimeoutMs, (doing, error) =>
      this.tellError(doing, error),
    )
    const { clock, events } = parts.core
    this.loop = new LoopWatch({
      clock,
      leaseMs: parts.leaseMs,
      running: parts.running,
      lastBeatMs: () => this.#lastBeatMs,
      onBlocked: (blockedMs, suspects) => {
        const jobs = suspects.map(({ job: { id, name } }) => ({ id, job: name }))
        events.emit('worker.blocked', { worker: this.#worker, blockedMs, jobs })
      },
    })
  }

  get worker(): WorkerId {
    return this.#worker
  }

  /** Whether the lease certainly stands, so that a job may be started. */
  isSureAt(nowMs: number): boolean {
    if (nowMs >= this.#sureUntilMs) this.#heedPulse()
    return nowMs < this.#sureUntilMs
  }

  /** Whether a job may be started that the store was asked about at this time. If not, a heartbeat asks again. */
  mayStart(askedMs: number, nowMs: number): boolean {
    const lastAskedMs = Math.max(askedMs, this.#lastBeatMs)
    const isFresh = nowMs - lastAskedMs < START_WITHIN_MS || this.#startWindow.allows(lastAskedMs, nowMs)
    if (!isFresh) this.beatNow()
    return isFresh
  }

  async start(): Promise<void> {
    const { worker: calls } = this.#parts.core.store
    await this.#register((registration) => calls.register(registration))
    this.#beating = this.#beat()
  }

  /** Beats now rather than at the next turn. */
  beatNow(): void {
    this.#bell.ring()
  }

  /** Settles, claims and reports in this incarnation's name; throws if the store did not answer. */
  async cycle({
    settle,
    claim,
    reports = [],
    offer: planned = null,
  }: SessionRequest): Promise<SessionAnswer> {
    while (!this.isSureAt(this.#now()) && !this.#stopped) await this.#renew()
    const worker = this.#worker
    const { core, callTimeoutMs } = this.#parts
    const sentMs = this.#now()
    const offer = planned === null ? undefined : this.#offers.send(planned, sentMs)
    const request = {
      worker,
      settle,
      claim,
      ...(reports.length === 0 ? {} : { reports }),
      ...(offer === undefined ? {} : { offer }),
    }
    const answer = await core.store.worker.cycle(request, callTimeoutMs).catch((error: unknown) => {
      if (offer !== undefined) this.#offers.failed(offer)
      if (claim !== null && !isRefusal(error)) this.#lostClaim(Math.max(claim.limit, offer?.jobs ?? 0))
      throw error
    })
    this.#settled(settle)
    if (!answer.alive) this.#die(worker)
    // Leases of an incarnation that has died meanwhile are not ours: rescue takes them back.
    const alive = worker === this.#worker
    const leases = alive ? answer.leases : []
    const { settled, offeredAt } = answer
    const handed = alive && offer !== undefined ? this.#offers.answered(offer, offeredAt) : []
    // All or none: if one cannot be read, nobody takes in the others either.
    const taken = [...leases, ...handed.map(({ lease }) => lease)]
    const sizes = taken.map(({ token, jobs }) => [token, jobs.length] as const)
    for (const [token, size] of sizes) this.#known.set(token, size)
    return { alive, settled, leases, sentMs, offered: alive && offeredAt !== undefined, handed }
  }

  /** What was handed over to this worker; null if it must not run, or not yet. */
  heardLeased(hint: LeasedHint): HandedLease | null {
    const handed = hint.worker === this.#worker ? this.#offers.hear(hint) : null
    if (handed !== null) this.#known.set(hint.lease.token, hint.lease.jobs.length)
    return handed
  }

  #lostClaim(jobs: number): void {
    this.#undelivered.lostClaim(jobs, this.#now())
    this.unknownJobs = this.#undelivered.jobs
  }

  /** A lease that could not be taken in: nothing of it may run here, and a heartbeat gives it back. */
  disown({ token, jobs }: Lease): void {
    this.#known.delete(token)
    this.#lostClaim(jobs.length)
  }

  /** Settles one position alone, and tries until the deadline. */
  async settleNow(request: SettleRequest): Promise<SettleAnswer> {
    const worker = this.#worker
    const { alive, answer } = await this.#parts.core.store.worker.settle(worker, request)
    this.#settled([request])
    if (!alive) this.#die(worker)
    return answer
  }

  /** Settles that will never be sent, because their lease is lost. */
  forget(tokens: Iterable<Token>): void {
    for (const token of tokens) this.#known.delete(token)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#bell.ring()
    await this.#beating
    // Whoever began it tells of its failure.
    await this.#renewing?.catch(() => undefined)
    this.#endPulse()
    await this.#startWindow.stop()
    const { core, callTimeoutMs } = this.#parts
    // If this fails, the worker is rescued when its lease is over, with nothing left to rescue.
    await core.store.worker
      .retire(this.#worker, callTimeoutMs)
      .catch((error: unknown) => this.tellError('retire', error))
  }

  async #register(send: (registration: Registration) => Promise<void>): Promise<void> {
    const { core, leaseMs, atOnce } = this.#parts
    const worker = this.#worker
    const sentMs = core.clock.monotonicMs()
    const most = atOnce?.sending()
    await send({ worker, leaseMs, atOnce: most })
    if (worker !== this.#worker) return
    if (most !== undefined) atOnce?.answered(most)
    this.#registered = true
    this.#lastBeatMs = sentMs
    this.#renewed(sentMs)
    this.#beginPulse()
  }

  #beginPulse(): void {
    const { core, leaseMs } = this.#parts
    this.#pulse = core.store.worker.keepAlive(this.#worker, leaseMs)
    if (this.#pulse !== null) this.loop.begin(this.#pulse)
  }

  #endPulse(): void {
    this.#pulse = null
    this.loop.end()
  }

  /** What was renewed while this loop was busy counts as well. */
  #heedPulse(): void {
    const pulse = this.#pulse
    if (pulse?.alive === true) this.#renewed(pulse.sentMs)
  }

  /** A heartbeat, or what stands in for it while the store does not know this incarnation yet; one that is under way. */
  #renew(): Promise<void> {
    const { core, callTimeoutMs } = this.#parts
    const registerAgain = (registration: Registration): Promise<void> =>
      core.store.worker.registerAgain(registration, callTimeoutMs)
    this.#renewing ??= (this.#registered ? this.#heartbeat() : this.#register(registerAgain)).finally(() => {
      this.#renewing = undefined
    })
    return this.#renewing
  }

  #renewed(sentMs: number): void {
    const { leaseMs } = this.#parts
    this.#sureUntilMs = sentMs + leaseMs - Math.min(leaseMs / 5, 2_000)
  }

  async #beat(): Promise<void> {
    const { core, leaseMs } = this.#parts
    let waitMs = leaseMs / 3
    while (!this.#stopped) {
      await this.#bell.wait(waitMs)
      if (this.#stopped) return
      // Jitter, so that a fleet that started together does not beat together.
      waitMs = (leaseMs / 3) * (0.8 + core.random.float() * 0.2)
      // What rang is not known to a heartbeat that was sent before. Whoever began that one tells of its failure.
      await this.#renewing?.catch(() => undefined)
      await this.#renew().catch((error: unknown) => {
        this.tellError('send a heartbeat', error)
        if (isStoreFailure(error) && !isLasting(error)) waitMs = Math.min(waitMs, LOST_BEAT_RETRY_MS)
      })
    }
  }

  async #heartbeat(): Promise<void> {
    const { atOnce, callTimeoutMs } = this.#parts
    const worker = this.#worker
    const sentMs = this.#now()
    const openBefore = this.#parts.openTokens()
    const undelivered = this.#undelivered.proven(this.#isKnown, sentMs)
    const heard = this.#heard
    const most = atOnce?.sending()
    const nth = ++this.#beats
    const request = { worker, undelivered, heard, nth, ...(most === undefined ? {} : { atOnce: most }) }
    const answer = await this.#parts.core.store.worker.heartbeat(request, callTimeoutMs)
    if (worker !== this.#worker) return
    if (!answer.alive) return this.#die(worker)
    if (most !== undefined) atOnce?.answered(most)
    this.#lastBeatMs = sentMs
    this.#startWindow.answered(this.#now() - sentMs)
    this.#renewed(sentMs)
    this.#undelivered.note(answer.tokens, this.#isKnown, sentMs)
    this.unknownJobs = this.#undelivered.jobs
    this.#noteLost(openBefore, answer.tokens)
    this.#heard = this.#heard.filter((notice) => !heard.includes(notice))
    for (const notice of answer.cancelled) this.#noteCancel(notice)
    for (const queue of answer.paused) this.notePaused(queue, sentMs)
    this.#parts.onBeat?.()
  }

  #noteCancel(notice: CancelNotice): void {
    if (!this.#known.has(notice.token)) return this.#early?.cancelledAt(notice)
    if (!this.#parts.onCancel(notice)) return
    this.#heard = [...this.#heard, notice]
    // A caller waits for the report that it took effect.
    this.beatNow()
  }

  // ── while a claim is under way ──────────────────────────────────────────────

  claimSent(): void {
    this.#claimsUnderWay++
  }

  /** To be called once what the claim brought has been judged. */
  claimLanded(): void {
    if (--this.#claimsUnderWay === 0) this.#earlyNotices = undefined
  }

  /** What was heard of a job before its claim was answered; null for nothing. */
  heardOf(attempt: Attempt): EarlyNotice | null {
    return this.#earlyNotices?.about(attempt) ?? null
  }

  /** The job was cancelled. A claim under way may be about to bring it. */
  noteCancelled(id: string, reason: string | null): void {
    this.#early?.cancelled(id, reason)
  }

  /** What is heard now; undefined if no claim is under way that it may concern. */
  get #early(): EarlyNotices | undefined {
    if (this.#claimsUnderWay > 0) this.#earlyNotices ??= new EarlyNotices()
    return this.#earlyNotices
  }

  /** A queue was paused at this time or before. */
  notePaused(queue: string, heardMs: number): void {
    this.#early?.paused(queue, heardMs)
    this.#parts.onPaused?.(queue, heardMs)
  }

  /**
   * What was open before the beat was sent, is open still, and is not in the answer, has been taken away. What was
   * claimed or settled while the beat was under way is none of the answer's business.
   */
  #noteLost(openBefore: ReadonlySet<Token>, tokens: readonly Token[]): void {
    const standing = new Set(tokens)
    const openNow = this.#parts.openTokens()
    const lost = new Set([...openBefore].filter((token) => openNow.has(token) && !standing.has(token)))
    if (lost.size > 0) this.#parts.onLost(lost)
  }

  readonly #isKnown = (token: Token): boolean => this.#known.has(token)

  /** The store has answered these settles. */
  #settled(settles: readonly SettleRequest[]): void {
    for (let from = 0; from < settles.length;) {
      const token = settles[from]?.token as Token
      let to = from + 1
      while (settles[to]?.token === token) to++
      const left = (this.#known.get(token) ?? 0) - (to - from)
      if (left > 0) this.#known.set(token, left)
      else this.#known.delete(token)
      from = to
    }
  }

  /** The store no longer knows this incarnation: all its leases are gone, and a new one begins. */
  #die(worker: WorkerId): void {
    if (worker !== this.#worker) return
    const lost = this.#parts.openTokens()
    this.#worker = this.#parts.core.ids.worker()
    this.#registered = false
    this.#sureUntilMs = 0
    this.#known.clear()
    this.#undelivered.clear()
    this.#offers.clear()
    this.#heard = []
    this.unknownJobs = 0
    this.#endPulse()
    this.#parts.onLost(lost)
    const facts = { worker: this.#worker, before: worker, abandoned: lost.size }
    this.#parts.core.events.emit('worker.reregistered', facts)
    this.#bell.ring()
  }

  /** Outages and missing rights were told by the store's client. Anything else is an error of the worker. */
  tellError(doing: string, error: unknown): void {
    tellWorkerError(this.#parts.core, this.#worker, doing, error)
  }

  #now(): number {
    return this.#parts.core.clock.monotonicMs()
  }
}
