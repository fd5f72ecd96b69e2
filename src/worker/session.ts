/**
 * A worker's standing in the store: its incarnation, its heartbeats, and how sure it is of its leases. The local
 * deadline counts from when a renewal was sent, not from when its answer came, so that a process that was frozen in
 * between does not trust a lease that has long been taken away. The same goes for what may forbid a start: a job is
 * started only within a `StartWindow` of asking the store about it.
 */
import type { Core } from '../core/core.ts'
import { isLasting, isRefusal } from '../errors.ts'
import type { Token, WorkerId } from '../job/ids.ts'
import { Bell } from '../std/bell.ts'
import {
  LATEST_ARRIVAL_MS,
  type CancelNotice,
  type ClaimRequest,
  type Lease,
  type LeasePosition,
  type Pulse,
  type Report,
  type SettleAnswer,
  type SettleRequest,
} from '../stores/store.ts'
import type { Attempt } from './attempt.ts'
import { EarlyNews } from './early-news.ts'
import { LoopWatch } from './loop-watch.ts'
import { StartWindow } from './start-window.ts'

export interface SessionParts {
  readonly core: Core
  readonly leaseMs: number
  readonly callTimeoutMs: number
  /** What runs in this worker's name. */
  readonly running: ReadonlySet<Attempt>
  /** The tokens under which something is still to be settled that was never sent. */
  readonly openTokens: () => ReadonlySet<Token>
  /** These leases are gone: whatever runs under them must stop, and nothing of it may be written. */
  readonly onLost: (tokens: ReadonlySet<Token>) => void
  /** True if the handler of that job is running: the store is told that the cancel took effect. */
  readonly onCancel: (notice: CancelNotice) => boolean
  /** A queue was paused at this time or before: what was claimed from it earlier and not started is to be given back. */
  readonly onPaused?: (queue: string, heardMs: number) => void
  /** A heartbeat was answered, and its news were told. */
  readonly onBeat?: () => void
  /** How many jobs can be running at once, see `Store.register`; missing where each job that is held may be. */
  readonly atOnce?: { readonly sending: () => number; readonly answered: (sent: number) => void }
  /** A new incarnation has begun. */
  readonly onReborn: (before: WorkerId, abandoned: number) => void
}

export interface SessionAnswer {
  /** False where the incarnation that claimed is gone: nothing was taken, which differs from empty. */
  readonly alive: boolean
  readonly settled: readonly SettleAnswer[]
  readonly leases: readonly Lease[]
  /** When it was asked. */
  readonly sentMs: number
}

const LOST_BEAT_RETRY_MS = 500

export class Session {
  readonly news = new EarlyNews()
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
  /** Renews the lease while this loop is blocked, where the store can. */
  #pulse: Pulse | null = null
  readonly #loop: LoopWatch
  #stopped = false
  #beating: Promise<void> | undefined
  /** One at a time, so that what they tell the store arrives in order. */
  #renewing: Promise<void> | undefined
  /** Cancels that took effect, as far as the store has not answered that it knows. */
  #heard: readonly LeasePosition[] = []
  /** Claims without an answer, and when they were given up. Each may lease so many jobs that this process knows nothing of. */
  #lostClaims: readonly { readonly jobs: number; readonly atMs: number }[] = []
  /** Leases that this process knows of, with how many of their settles are still unanswered. */
  readonly #known = new Map<Token, number>()
  /** Leases in our name that we know nothing of, and since when: perhaps their claim's answer was lost. */
  readonly #strangers = new Map<Token, number>()

  constructor(parts: SessionParts) {
    this.#parts = parts
    this.#worker = parts.core.ids.worker()
    this.#bell = new Bell(parts.core.clock)
    this.#startWindow = new StartWindow(parts.core, this.#worker, parts.callTimeoutMs)
    const { clock, events } = parts.core
    this.#loop = new LoopWatch({
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
  get sure(): boolean {
    this.#heedPulse()
    return this.#parts.core.clock.monotonicMs() < this.#sureUntilMs
  }

  /** Whether a job may be started that the store was asked about at this time; if not, a heartbeat asks again. */
  mayStart(askedMs: number): boolean {
    const isFresh = this.#startWindow.allows(Math.max(askedMs, this.#lastBeatMs))
    if (!isFresh) this.beatNow()
    return isFresh
  }

  /** Most jobs that may be leased to this worker without its knowledge. */
  get unknownJobs(): number {
    return this.#lostClaims.reduce((sum, { jobs }) => sum + jobs, 0)
  }

  async start(): Promise<void> {
    const { connection } = this.#parts.core
    await this.#register((doing, work) => connection.persist(doing, work))
    this.#beating = this.#beat()
  }

  /** A handler starts, and has what time it may take. */
  started(attempt: Attempt): void {
    this.#loop.started(attempt)
  }

  /** A handler has returned. */
  ended(attempt: Attempt): void {
    this.#loop.ended(attempt)
  }

  /** Beats now rather than at the next turn. */
  beatNow(): void {
    this.#bell.ring()
  }

  /** Reports, settles and claims in this incarnation's name; throws if the store did not answer. */
  async cycle(
    settle: readonly SettleRequest[],
    claim: ClaimRequest | null,
    reports: readonly Report[] = [],
  ): Promise<SessionAnswer> {
    while (!this.sure && !this.#stopped) await this.#renew()
    const worker = this.#worker
    const { core, callTimeoutMs } = this.#parts
    const request = reports.length === 0 ? { worker, settle, claim } : { worker, settle, claim, reports }
    const sentMs = this.#now()
    const answer = await core.connection
      .call('settle and claim', (store) => store.cycle(request), callTimeoutMs)
      .catch((error: unknown) => {
        if (claim !== null && !isRefusal(error))
          this.#lostClaims = [...this.#lostClaims, { jobs: claim.limit, atMs: this.#now() }]
        throw error
      })
    settle.forEach((one) => this.#answered(one.token))
    if (!answer.alive) this.#die(worker)
    // Leases in the name of an incarnation that has died meanwhile are not ours: rescue takes them back.
    const alive = worker === this.#worker
    const leases = alive ? answer.leases : []
    for (const lease of leases) this.#known.set(lease.token, lease.jobs.length)
    return { alive, settled: answer.settled, leases, sentMs }
  }

  /** Settles one position alone, and tries until the deadline. */
  async settleNow(request: SettleRequest): Promise<SettleAnswer> {
    const worker = this.#worker
    const answer = await this.#parts.core.connection.persist('settle a message', (store) =>
      store.cycle({ worker, settle: [request], claim: null }),
    )
    this.#answered(request.token)
    if (!answer.alive) this.#die(worker)
    return answer.settled[0] ?? 'lost'
  }

  /** Settles that will never be sent, because their lease is lost. */
  forget(tokens: Iterable<Token>): void {
    for (const token of tokens) this.#known.delete(token)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#bell.ring()
    await this.#beating
    await this.#renewing?.catch(() => undefined)
    this.#endPulse()
    await this.#startWindow.stop()
    const { core, callTimeoutMs } = this.#parts
    // A worker that cannot say goodbye is rescued when its lease is over, with nothing left to rescue.
    await core.connection
      .call('retire', (store) => store.retire(this.#worker), callTimeoutMs)
      .catch(() => undefined)
  }

  async #register(call: Core['connection']['call']): Promise<void> {
    const { core, leaseMs, atOnce } = this.#parts
    const worker = this.#worker
    const sentMs = core.clock.monotonicMs()
    const most = atOnce?.sending()
    await call('register the worker', (store) => store.register(worker, leaseMs, most))
    if (worker !== this.#worker) return
    if (most !== undefined) atOnce?.answered(most)
    this.#registered = true
    this.#lastBeatMs = sentMs
    this.#renewed(sentMs)
    this.#beginPulse()
  }

  #beginPulse(): void {
    const { core, leaseMs } = this.#parts
    this.#pulse = core.connection.store.keepAlive?.(this.#worker, leaseMs) ?? null
    if (this.#pulse !== null) this.#loop.begin(this.#pulse)
  }

  #endPulse(): void {
    this.#pulse = null
    this.#loop.end()
  }

  /** What was renewed while this loop was busy counts as well. */
  #heedPulse(): void {
    const pulse = this.#pulse
    if (pulse === null || this.#parts.core.clock.monotonicMs() < this.#sureUntilMs) return
    if (pulse.alive) this.#renewed(pulse.sentMs)
  }

  /** A heartbeat, or what stands in for it while the store does not know this incarnation yet; one that is under way. */
  #renew(): Promise<void> {
    const { core, callTimeoutMs } = this.#parts
    const call: Core['connection']['call'] = (doing, work) => core.connection.call(doing, work, callTimeoutMs)
    this.#renewing ??= (this.#registered ? this.#heartbeat(call) : this.#register(call)).finally(() => {
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
      // What rang is not known to a heartbeat that was sent before.
      await this.#renewing?.catch(() => undefined)
      await this.#renew().catch((error: unknown) => {
        if (!isLasting(error)) waitMs = Math.min(waitMs, LOST_BEAT_RETRY_MS)
      })
    }
  }

  async #heartbeat(call: Core['connection']['call']): Promise<void> {
    const { atOnce } = this.#parts
    const worker = this.#worker
    const sentMs = this.#now()
    const openBefore = this.#parts.openTokens()
    const strangers = this.#provenStrangers(sentMs)
    const heard = this.#heard
    const most = atOnce?.sending()
    const nth = ++this.#beats
    const request = { worker, strangers, heard, nth, ...(most === undefined ? {} : { atOnce: most }) }
    const answer = await call('send a heartbeat', (store) => store.heartbeat(request))
    if (worker !== this.#worker) return
    if (!answer.alive) return this.#die(worker)
    if (most !== undefined) atOnce?.answered(most)
    this.#lastBeatMs = sentMs
    this.#startWindow.answered(this.#now() - sentMs)
    this.#renewed(sentMs)
    this.#noteStrangers(answer.tokens, sentMs)
    this.#forgetLostClaims(sentMs)
    this.#noteLost(openBefore, answer.tokens)
    this.#heard = this.#heard.filter((notice) => !heard.includes(notice))
    for (const notice of answer.cancelled) this.#noteCancel(notice)
    for (const queue of answer.paused) this.notePaused(queue, sentMs)
    this.#parts.onBeat?.()
  }

  #noteCancel(notice: CancelNotice): void {
    if (!this.#known.has(notice.token)) return this.news.cancelledAt(notice)
    if (!this.#parts.onCancel(notice)) return
    this.#heard = [...this.#heard, notice]
    // Somebody waits to be told that it took effect.
    this.beatNow()
  }

  /** A queue was paused at this time or before. */
  notePaused(queue: string, heardMs: number): void {
    this.news.paused(queue, heardMs)
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

  #noteStrangers(tokens: readonly Token[], nowMs: number): void {
    const unknown = new Set(tokens.filter((token) => !this.#known.has(token)))
    for (const token of this.#strangers.keys()) if (!unknown.has(token)) this.#strangers.delete(token)
    for (const token of unknown) if (!this.#strangers.has(token)) this.#strangers.set(token, nowMs)
  }

  /**
   * A claim may reach the store long after it was given up. It is forgotten only after a heartbeat that was sent when the
   * claim could no longer arrive found no lease that this process does not know.
   */
  #forgetLostClaims(sentMs: number): void {
    if (this.#lostClaims.length === 0 || this.#strangers.size > 0) return
    this.#lostClaims = this.#lostClaims.filter(({ atMs }) => sentMs - atMs < LATEST_ARRIVAL_MS)
  }

  /** Seen for longer than any claim may take to answer: nobody will ever come to know these. */
  #provenStrangers(nowMs: number): Token[] {
    return [...this.#strangers]
      .filter(([token, sinceMs]) => nowMs - sinceMs > this.#provenMs && !this.#known.has(token))
      .map(([token]) => token)
  }

  get #provenMs(): number {
    return 2 * this.#parts.callTimeoutMs
  }

  #answered(token: Token): void {
    const left = (this.#known.get(token) ?? 0) - 1
    if (left > 0) this.#known.set(token, left)
    else this.#known.delete(token)
  }

  /** The store no longer knows this incarnation: all its leases are gone, and a new one begins. */
  #die(worker: WorkerId): void {
    if (worker !== this.#worker) return
    const lost = this.#parts.openTokens()
    this.#worker = this.#parts.core.ids.worker()
    this.#registered = false
    this.#sureUntilMs = 0
    this.#known.clear()
    this.#strangers.clear()
    this.#heard = []
    this.#lostClaims = []
    this.#endPulse()
    this.#parts.onLost(lost)
    this.#parts.onReborn(worker, lost.size)
    this.#bell.ring()
  }
  #now(): number {
    return this.#parts.core.clock.monotonicMs()
  }
}
