/**
 * A queue by hand, for people who pull messages themselves. The same jobs, leases, fences, retries and timeouts as a
 * worker's, and the same session: only the loop is the caller's.
 */
import type { Core } from '../core/core.ts'
import type { Client } from '../client/client.ts'
import { jobHandle, type Handle } from '../client/handle.ts'
import type { LocalCancel, LocalWorker } from '../core/local-workers.ts'
import { withoutTx } from '../client/job.ts'
import { refuseUnknown } from '../core/settings.ts'
import type { EnqueueOptions } from '../client/types.ts'
import { HoldfastError, isRefusal, RetryIn } from '../errors.ts'
import type { JobInfo } from '../job/context.ts'
import { plainDefinition, readJobName } from '../job/definition.ts'
import { readDuration } from '../job/duration.ts'
import { classify } from '../job/failure.ts'
import type { Token } from '../job/ids.ts'
import { readWhole } from '../job/numbers.ts'
import { encodeResult } from '../job/payload.ts'
import { toError, type Outcome } from '../job/settlement.ts'
import { Bell } from '../std/bell.ts'
import { asError } from '../std/clock.ts'
import type { Duration } from '../std/duration.ts'
import { MAX_BATCH, type CancelNotice, type Lease, type SettleAnswer, type WakeUp } from '../stores/store.ts'
import { Attempt } from '../worker/attempt.ts'
import { jobInfo } from '../worker/context.ts'
import { lateOutcome, outcomeOfAbort } from '../worker/execute.ts'
import { Session } from '../worker/session.ts'
import {
  settle,
  settleAsRefused,
  tellSettled,
  timeoutOf,
  withOverrides,
  type PendingSettle,
} from '../worker/settling.ts'
import { Timeouts } from '../worker/timeouts.ts'

export interface SendOptions extends Omit<EnqueueOptions, 'queue'> {
  /** What kind of message it is. @default 'message' */
  readonly name?: string
}

export interface GetOptions {
  /** @default 1 */
  readonly limit?: number
  /** How long to wait for a first message. @default 0 */
  readonly wait?: Duration
  readonly signal?: AbortSignal
}

/** A message in the caller's hands: neither acked nor nacked, it counts as failed when its timeout is over. */
export interface Message {
  readonly id: string
  readonly name: string
  readonly payload: unknown
  readonly job: JobInfo
  /** Fires when the message is no longer the caller's: timeout, cancelled, lease_lost or shutdown. */
  readonly signal: AbortSignal
  readonly fence: bigint
  /**
   * Done. Rejects with HF_LEASE_LOST if the message is no longer the caller's, with HF_STORE_UNREACHABLE if it could not
   * be written, and with HF_STORE_REFUSED if the store cannot hold the result. After the last two it is still held, and
   * can be acked or nacked again.
   */
  ack(result?: unknown): Promise<void>
  /** Failed: retried by its policy, or after `retryIn`, until its attempts are used. */
  nack(error?: unknown, options?: { readonly retryIn?: Duration }): Promise<void>
}

const LEASE_MS = 30_000
const CALL_TIMEOUT_MS = 3_000
/** When to try again to settle a message that nobody holds any more. */
const SETTLE_AGAIN_MS = 1_000

export class MessageQueue implements LocalWorker {
  readonly name: string
  readonly #client: Client
  readonly #core: Core
  /** Somebody must promote, rescue and prune while messages are being pulled. */
  readonly #onFirstGet: (leaseMs: number) => void
  readonly #session: Session
  /** One for each get() that waits. */
  readonly #bells = new Set<Bell>()
  /** What close() waits for: each get() and settle has an end of its own. */
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #held = new Set<Attempt>()
  readonly #timeouts: Timeouts
  #started: Promise<void> | undefined
  #unsubscribe: (() => Promise<void>) | undefined
  #leave: (() => void) | undefined
  #closed = false

  constructor(client: Client, name: string, onFirstGet: (leaseMs: number) => void) {
    this.name = name
    const { core } = client
    this.#client = client
    this.#core = core
    this.#onFirstGet = onFirstGet
    this.#timeouts = new Timeouts(core.clock, this.#held, (attempt) => this.#overdue(attempt))
    this.#session = new Session({
      core,
      leaseMs: LEASE_MS,
      callTimeoutMs: CALL_TIMEOUT_MS,
      running: this.#held,
      openTokens: () => new Set([...this.#held].map((attempt) => attempt.token)),
      onLost: (tokens) => this.#lose(tokens),
      onCancel: (notice) => this.#cancel(notice),
      onReborn: (before, abandoned) =>
        core.events.emit('worker.reborn', { worker: this.#session.worker, before, abandoned }),
    })
  }

  async send(payload: unknown, given: SendOptions = {}): Promise<Handle<unknown>> {
    const { name = 'message', ...rest } = given
    const { tx, options } = withoutTx(rest)
    const definition = plainDefinition(readJobName(name), this.name, this.#core.settings)
    const { id, outcome } = await this.#client.enqueuer.one({ definition, input: payload, options }, tx)
    return jobHandle(this.#core, id, name, outcome)
  }

  /** At most `limit` messages, best first; none where none came within `wait`. */
  async get(options: GetOptions = {}): Promise<readonly Message[]> {
    refuseUnknown(options, new Set(['limit', 'wait', 'signal']), 'get()')
    const limit = readWhole(options.limit ?? 1, 'limit', 1, MAX_BATCH)
    const waitMs = options.wait === undefined ? 0 : readDuration(options.wait, 'wait', { orZero: true })
    return this.#finish(this.#get(limit, waitMs, options.signal))
  }

  async #get(limit: number, waitMs: number, signal: AbortSignal | undefined): Promise<readonly Message[]> {
    const { clock, settings } = this.#core
    const deadlineMs = clock.monotonicMs() + waitMs
    const bell = new Bell(clock)
    const ring = (): void => bell.ring()
    this.#bells.add(bell)
    signal?.addEventListener('abort', ring)
    try {
      for (;;) {
        if (signal?.aborted) throw asError(signal.reason)
        if (this.#closed) throw new HoldfastError('HF_CLOSED', `Queue "${this.name}" is closed.`)
        this.#started ??= this.#start()
        await this.#started
        const messages = await this.#claim(limit)
        const leftMs = deadlineMs - clock.monotonicMs()
        if (messages.length > 0 || leftMs <= 0) return messages
        await bell.wait(Math.min(leftMs, settings.env.pollMs ?? 1_000))
      }
    } finally {
      this.#bells.delete(bell)
      signal?.removeEventListener('abort', ring)
    }
  }

  /** How many wait, now or for later. */
  async size(): Promise<number> {
    const queues = await this.#core.store.queues()
    const counts = queues.find((status) => status.queue === this.name)?.counts
    return counts === undefined ? 0 : counts.ready + counts.scheduled + counts.blocked
  }

  /** Gives unfinished messages back without using an attempt. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    for (const bell of this.#bells) bell.ring()
    await Promise.allSettled(this.#underWay)
    this.#leave?.()
    await this.#unsubscribe?.()
    for (const attempt of this.#held) {
      attempt.stop('shutdown', 'The queue was closed.')
      this.#settleQuietly(attempt)
    }
    await Promise.allSettled(this.#underWay)
    this.#timeouts.clear()
    if (this.#started !== undefined) await this.#session.stop()
  }

  /** Lets close() know of what is under way. */
  async #finish<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work)
    try {
      return await work
    } finally {
      this.#underWay.delete(work)
    }
  }

  async #start(): Promise<void> {
    try {
      this.#leave ??= this.#core.localWorkers.join(this)
      this.#unsubscribe ??= await this.#core.store.subscribe((hint) => this.#hear(hint))
      await this.#session.start()
    } catch (error) {
      // The next get() tries again.
      this.#started = undefined
      throw error
    }
    this.#onFirstGet(LEASE_MS)
  }

  #hear(hint: WakeUp): void {
    if (hint.type === 'ready' && hint.queue === this.name) for (const bell of this.#bells) bell.ring()
    if (hint.type === 'cancel' && hint.worker === this.#session.worker) this.#session.beatNow()
    if (hint.type === 'paused') this.paused(hint.queue)
  }

  async #claim(limit: number): Promise<Message[]> {
    const suspects = ![...this.#held].some((attempt) => attempt.job.crashes > 0)
    const { news } = this.#session
    news.claimSent()
    let held: Attempt[] = []
    try {
      const { leases, sentMs } = await this.#session.cycle([], { queue: this.name, limit, suspects })
      held = leases.flatMap((lease) => this.#receive(lease, sentMs))
    } finally {
      news.claimLanded()
    }
    const messages = held.flatMap((attempt) => (this.#isOver(attempt) ? [] : [this.#message(attempt)]))
    // Where all of them were too late, others may stand behind them.
    return held.length > 0 && messages.length === 0 ? this.#claim(limit) : messages
  }

  #receive(lease: Lease, sentMs: number): Attempt[] {
    const held = lease.jobs.map((_, position) => this.#hold(lease, position))
    for (const attempt of held) {
      const news = this.#session.news.about(lease, attempt.position, attempt.job, sentMs)
      if (news?.type === 'cancelled') this.#stop(attempt, news.reason)
      else if (news?.type === 'paused') this.#settleQuietly(attempt, { type: 'interrupted' })
    }
    return held
  }

  /** Whether it was cancelled, given back, or is too late: then nobody gets to see it. */
  #isOver(attempt: Attempt): boolean {
    if (attempt.phase !== 'running') return true
    const outcome = lateOutcome(attempt, this.#core.clock.monotonicMs())
    if (outcome === null) return false
    this.#settleQuietly(attempt, outcome)
    return true
  }

  #hold(lease: Lease, position: number): Attempt {
    const nowMs = this.#core.clock.monotonicMs()
    const job = lease.jobs[position]
    if (job === undefined) throw new Error(`lease ${lease.token} has no position ${position}`)
    const attempt = new Attempt(job, lease, position, this.#session.worker, nowMs)
    attempt.begin(nowMs, timeoutOf(this.#core, job, this.#core.definition(job.name)))
    this.#held.add(attempt)
    this.#session.started(attempt)
    this.#timeouts.set(attempt, nowMs + attempt.timeoutMs)
    return attempt
  }

  #message(attempt: Attempt): Message {
    const { job } = attempt
    this.#core.events.emit('job.started', { ...attempt.facts, waitMs: attempt.waitMs })
    const payload = JSON.parse(job.payload) as unknown
    job.payload = ''
    return {
      id: job.id,
      name: job.name,
      payload,
      job: jobInfo(attempt),
      get signal() {
        return attempt.abort.signal
      },
      fence: BigInt(attempt.token),
      ack: async (result) => {
        const { json, dropped } = encodeResult(result)
        await this.#settleByHand(attempt, { type: 'succeeded', result: json, resultDropped: dropped })
      },
      nack: async (error, { retryIn } = {}) => {
        const cause = error === undefined ? new Error('The message was refused.') : error
        if (retryIn !== undefined) readDuration(retryIn, 'retryIn', { orZero: true })
        const thrown = retryIn === undefined ? cause : new RetryIn(retryIn, toError(cause).message, { cause })
        await this.#settleByHand(attempt, { type: 'failed', thrown, kind: classify(thrown) })
      },
    }
  }

  async #settleByHand(attempt: Attempt, outcome: Outcome): Promise<void> {
    const { abort, job, phase } = attempt
    if (abort.reason !== undefined) throw noLongerHeld(attempt, abort.reason.message)
    if (phase === 'settled')
      throw new HoldfastError('HF_MESSAGE_SETTLED', `Message ${job.id} is settled already.`)
    await this.#finish(this.#settle(attempt, outcome))
  }

  /** `isQuiet`: nobody waits for it. */
  async #settle(attempt: Attempt, outcome: Outcome, isQuiet = false): Promise<void> {
    attempt.phase = 'settled'
    this.#held.delete(attempt)
    this.#session.ended(attempt)
    const base = this.#core.definition(attempt.job.name)?.retry ?? this.#core.settings.retry
    const policy = withOverrides(base, attempt)
    const pending = settle(this.#core, attempt, outcome, policy)
    const { written, answer } = await this.#write(pending, isQuiet).catch((error: unknown) => {
      this.#holdOn(attempt)
      throw error
    })
    tellSettled(this.#core, written, answer)
    if (answer === 'lost') throw noLongerHeld(attempt, 'Its lease was lost.')
  }

  /** If the store refuses the data, whoever waits can settle the message in another way. Otherwise it becomes a dead letter. */
  async #write(
    pending: PendingSettle,
    isQuiet: boolean,
  ): Promise<{ readonly written: PendingSettle; readonly answer: SettleAnswer }> {
    try {
      return { written: pending, answer: await this.#session.settleNow(pending.request) }
    } catch (error) {
      if (!isQuiet || !isRefusal(error)) throw error
      const written = settleAsRefused(this.#core, pending, toError(error))
      return { written, answer: await this.#session.settleNow(written.request) }
    }
  }

  /** What could not be written is still held: somebody must settle it, for its lease lives as long as this process. */
  #holdOn(attempt: Attempt): void {
    attempt.phase = 'running'
    this.#held.add(attempt)
    this.#session.started(attempt)
    this.#timeouts.set(attempt, attempt.timeoutAtMs)
  }

  #overdue(attempt: Attempt): void {
    attempt.stop('timeout', `The message was held longer than ${attempt.timeoutMs} ms.`)
    this.#settleQuietly(attempt)
  }

  /** A message is no longer the caller's when its cancel is heard: the settle tells the store. */
  #cancel({ token, position, reason }: CancelNotice): boolean {
    const attempt = [...this.#held].find((one) => one.token === token && one.position === position)
    if (attempt !== undefined) this.#stop(attempt, reason)
    return false
  }

  /** See `LocalWorker`. */
  cancelled(id: string, reason: string | null): LocalCancel {
    this.#session.news.cancelled(id, reason)
    const attempt = [...this.#held].find((one) => one.job.id === id)
    if (attempt === undefined) return 'unknown'
    this.#stop(attempt, reason)
    return 'dropped'
  }

  /** What get() has brought is in the caller's hands; what it is about to bring is not. */
  paused(queue: string): void {
    if (queue === this.name) this.#session.notePaused(queue, this.#core.clock.monotonicMs())
  }

  #stop(attempt: Attempt, reason: string | null): void {
    attempt.cancelReason = reason
    attempt.stop('cancelled', reason ?? 'The message was cancelled.')
    this.#settleQuietly(attempt)
  }

  /** Nobody waits for this settle, so nobody else would try again. */
  #settleQuietly(attempt: Attempt, outcome: Outcome = outcomeOfAbort(attempt)): void {
    this.#finish(this.#settle(attempt, outcome, true)).catch(() => {
      if (this.#closed || attempt.phase !== 'running') return
      this.#timeouts.set(attempt, this.#core.clock.monotonicMs() + SETTLE_AGAIN_MS)
    })
  }

  #lose(tokens: ReadonlySet<Token>): void {
    for (const attempt of this.#held) {
      if (!tokens.has(attempt.token)) continue
      attempt.phase = 'lost'
      attempt.stop('lease_lost', 'The lease was taken away: somebody else has the message by now.')
      this.#held.delete(attempt)
      this.#session.ended(attempt)
      this.#core.events.emit('job.lost', attempt.end(attempt.runMs(this.#core.clock.monotonicMs())))
    }
    this.#session.forget(tokens)
  }
}

function noLongerHeld({ job }: Attempt, why: string): HoldfastError {
  return new HoldfastError('HF_LEASE_LOST', `Message ${job.id} is no longer held. ${why}`)
}
