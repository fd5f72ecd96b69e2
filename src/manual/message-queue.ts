/**
 * A manual queue, for callers that pull messages themselves. It has the same jobs, leases, fences, retries, timeouts
 * and session as a worker, and holds its attempts in the same way: only the loop is the caller's.
 */
import type { Core } from '../core/core.ts'
import type { Client } from '../client/client.ts'
import { jobHandle, type Handle } from '../client/handle.ts'
import type { LocalCancel, LocalWorker } from '../core/local-workers.ts'
import type { WakeUpListeners } from '../core/store-client.ts'
import { ENQUEUE_FIELDS, withoutTx } from '../client/job.ts'
import type { EnqueueOptions } from '../client/types.ts'
import { HoldfastError } from '../errors.ts'
import { plainDefinition, readJobName } from '../job/definition.ts'
import { duration } from '../job/duration.ts'
import type { Token } from '../job/ids.ts'
import { enqueuePaths } from '../job/new-job.ts'
import { asGiven, readersFor, readOptions, refuseUnknown, signal, whole } from '../job/options.ts'
import type { Outcome } from '../job/settlement.ts'
import { Bell } from '../std/bell.ts'
import type { Duration } from '../std/duration.ts'
import { toError } from '../std/text.ts'
import { MAX_BATCH, type CancelNotice, type Lease } from '../stores/store.ts'
import { Attempt } from '../worker/attempt.ts'
import { Attempts } from '../worker/attempts.ts'
import { failed, lateOutcome } from '../worker/execute.ts'
import { settleApart, type SplitAnswer } from '../worker/refused-settles.ts'
import { Session } from '../worker/session.ts'
import type { PendingSettle } from '../worker/settling.ts'
import { messageOf, type Message } from './message.ts'

export interface SendOptions extends Omit<EnqueueOptions, 'queue'> {
  /** Kind of the message. @default 'message' */
  readonly name?: string
}

export interface GetOptions {
  /** @default 1 */
  readonly limit?: number
  /** How long to wait for a first message. @default 0 */
  readonly wait?: Duration
  readonly signal?: AbortSignal
}

const { queue: _queue, ...enqueueFields } = ENQUEUE_FIELDS
const SEND_FIELDS = readersFor<SendOptions>()({ ...enqueueFields, name: asGiven })
const SEND = enqueuePaths('send()', ['tx', 'name'])
const GET_FIELDS = readersFor<GetOptions>()({
  limit: whole(1, MAX_BATCH),
  wait: duration({ orZero: true }),
  signal,
})

const LEASE_MS = 30_000
const CALL_TIMEOUT_MS = 3_000
/** How long to wait before settling a message again that no caller holds. */
const SETTLE_AGAIN_MS = 1_000

export class MessageQueue implements LocalWorker {
  readonly name: string
  readonly #client: Client
  readonly #core: Core
  /** Starts maintenance, which must promote, rescue and prune while messages are pulled. */
  readonly #onFirstGet: (leaseMs: number) => void
  readonly #session: Session
  /** One bell for each get() that waits. */
  readonly #bells = new Set<Bell>()
  /** Pending get() and settle calls: close() waits for them. */
  readonly #underWay = new Set<Promise<unknown>>()
  /** Messages in callers' hands. */
  readonly #held: Attempts
  /** Unwritten settlements of messages that no caller holds. */
  readonly #unwritten = new Map<Attempt, PendingSettle>()
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
    this.#held = new Attempts({
      core,
      definitionOf: (name) => core.definition(name),
      // There is no handler to wait for: a message that must end is settled at once.
      graceMs: 0,
      loop: {
        started: (attempt) => this.#session.loop.started(attempt),
        ended: (attempt) => this.#session.loop.ended(attempt),
      },
      onGivenUp: (pending) => void this.#settleQuietly(pending),
    })
    this.#session = new Session({
      core,
      leaseMs: LEASE_MS,
      callTimeoutMs: CALL_TIMEOUT_MS,
      running: this.#held.running,
      openTokens: () => new Set([...this.#held.running].map((attempt) => attempt.token)),
      onLost: (tokens) => this.#lose(tokens),
      onCancel: (notice) => this.#cancel(notice),
    })
  }

  async send(payload: unknown, given: SendOptions = {}): Promise<Handle<unknown>> {
    refuseUnknown(given, 'send()', SEND_FIELDS)
    const { name = 'message', ...rest } = given
    const { tx, options } = withoutTx(rest)
    const definition = plainDefinition(readJobName(name), this.name, this.#core.settings)
    const { id, outcome } = await this.#client.enqueuer.one(
      { definition, input: payload, options, at: SEND },
      tx,
    )
    return jobHandle(this.#core, id, name, outcome)
  }

  /** At most `limit` messages, lowest rank first. Empty if none arrived within `wait`. */
  async get(options: GetOptions = {}): Promise<readonly Message[]> {
    const { limit = 1, wait: waitMs = 0, signal } = readOptions(options, 'get()', GET_FIELDS)
    return this.#finish(this.#get(limit, waitMs, signal))
  }

  async #get(limit: number, waitMs: number, signal: AbortSignal | undefined): Promise<readonly Message[]> {
    const { clock, settings } = this.#core
    const begunMs = clock.monotonicMs()
    const deadlineMs = begunMs + waitMs
    // Passing over messages that no caller gets is not waiting for one, but has to end as well.
    const giveUpMs = begunMs + Math.max(waitMs, settings.timeoutMs)
    const bell = new Bell(clock)
    const ring = (): void => bell.ring()
    this.#bells.add(bell)
    signal?.addEventListener('abort', ring)
    try {
      for (;;) {
        if (signal?.aborted) throw toError(signal.reason)
        if (this.#closed) throw new HoldfastError('HF_CLOSED', `Queue "${this.name}" is closed.`)
        this.#started ??= this.#start()
        await this.#started
        const { messages, passedOver } = await this.#claim(limit)
        if (messages.length > 0) return messages
        if (passedOver && clock.monotonicMs() < giveUpMs) continue
        const leftMs = deadlineMs - clock.monotonicMs()
        if (leftMs <= 0) return messages
        await bell.wait(Math.min(leftMs, settings.env.pollMs ?? 1_000))
      }
    } finally {
      this.#bells.delete(bell)
      signal?.removeEventListener('abort', ring)
    }
  }

  /** Number of waiting messages, scheduled ones included. */
  async size(): Promise<number> {
    const queues = await this.#core.store.queues()
    const counts = queues.find((status) => status.queue === this.name)?.counts
    return counts === undefined ? 0 : counts.ready + counts.scheduled + counts.blocked
  }

  /** Closes the queue. Unfinished messages are released without using an attempt. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    for (const bell of this.#bells) bell.ring()
    await Promise.allSettled(this.#underWay)
    this.#leave?.()
    await this.#unsubscribe?.()
    for (const attempt of this.#held.running) this.#held.stop(attempt, 'shutdown', 'The queue was closed.')
    await Promise.allSettled(this.#underWay)
    this.#held.clear()
    if (this.#started !== undefined) await this.#session.stop()
  }

  /** Makes close() wait for this work. */
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
      this.#unsubscribe ??= await this.#core.store.subscribe(this.#wakeUps)
      await this.#session.start()
    } catch (error) {
      // The next get() tries again.
      this.#started = undefined
      throw error
    }
    this.#onFirstGet(LEASE_MS)
  }

  readonly #wakeUps: WakeUpListeners = {
    ready: ({ queue }) => {
      if (queue === this.name) for (const bell of this.#bells) bell.ring()
    },
    cancel: ({ worker }) => {
      if (worker === this.#session.worker) this.#session.beatNow()
    },
    paused: ({ queue }) => this.paused(queue),
  }

  async #claim(limit: number): Promise<Claimed> {
    const suspects = ![...this.#held.running].some((attempt) => attempt.job.crashes > 0)
    const messages: Message[] = []
    const ended: Promise<void>[] = []
    const errors: unknown[] = []
    this.#session.claimSent()
    try {
      const claim = { queue: this.name, limit, suspects }
      const { leases, sentMs } = await this.#session.cycle({ settle: [], claim })
      for (const { attempt, outcome } of leases.flatMap((lease) => this.#takeIn(lease, sentMs, errors))) {
        const ending = outcome ?? this.#giveOut(attempt, messages)
        if (ending !== null) ended.push(this.#end(attempt, ending))
      }
    } finally {
      this.#session.claimLanded()
    }
    if (messages.length > 0) {
      for (const error of errors) this.#session.tellError('claim messages', error)
      return { messages, passedOver: false }
    }
    // Others may stand behind those that no caller gets. The next claim waits: it would pile up settles.
    await Promise.all(ended)
    if (errors.length > 0) throw errors[0]
    return { messages, passedOver: ended.length > 0 }
  }

  /** All messages of a lease. If one cannot be read, none of them is held, and a heartbeat gives the lease back. */
  #takeIn(lease: Lease, sentMs: number, errors: unknown[]): TakenIn[] {
    const { worker } = this.#session
    const nowMs = this.#core.clock.monotonicMs()
    try {
      return lease.jobs.map((job, position) => {
        const attempt = new Attempt(job, lease, position, worker, nowMs, sentMs)
        return { attempt, outcome: this.#outcomeOf(attempt, nowMs) }
      })
    } catch (error) {
      errors.push(error)
      this.#session.disown(lease)
      return []
    }
  }

  /** Its outcome if it was cancelled or paused meanwhile, or is too late: then no caller gets it. */
  #outcomeOf(attempt: Attempt, nowMs: number): Outcome | null {
    const notice = this.#session.heardOf(attempt)
    if (notice?.type === 'cancelled') return { type: 'cancelled', reason: notice.reason }
    if (notice?.type === 'paused') return { type: 'interrupted' }
    return lateOutcome(attempt, nowMs)
  }

  /** Adds the message to those for the caller. If that is not possible, its attempt has failed: returns its outcome. */
  #giveOut(attempt: Attempt, messages: Message[]): Outcome | null {
    const failure = this.#held.start(attempt, this.#core.clock.monotonicMs())
    if (failure !== null) return failure
    try {
      messages.push(messageOf(attempt, (...settled) => this.#settleByHand(...settled)))
      return null
    } catch (error) {
      return failed(error)
    }
  }

  async #settleByHand(attempt: Attempt, outcome: Outcome): Promise<void> {
    const { abort, job } = attempt
    if (abort.reason !== undefined) throw noLongerHeld(attempt, abort.reason.message)
    const pending = this.#held.conclude(attempt, outcome)
    if (pending === null)
      throw new HoldfastError('HF_MESSAGE_SETTLED', `Message ${job.id} is already settled.`)
    await this.#finish(this.#write(pending, (settle) => this.#send(settle)))
  }

  /** Ends a message that no caller has. */
  async #end(attempt: Attempt, outcome: Outcome): Promise<void> {
    const pending = this.#held.conclude(attempt, outcome)
    if (pending !== null) await this.#settleQuietly(pending)
  }

  /** Never rejects: no caller waits for this settle, so it is tried again from here. */
  async #settleQuietly(pending: PendingSettle): Promise<void> {
    const { attempt } = pending
    const first = this.#unwritten.get(attempt) ?? pending
    this.#unwritten.delete(attempt)
    await this.#finish(this.#write(first, (settle) => this.#sendOrRefuse(settle))).catch((error: unknown) => {
      if (this.#closed || attempt.phase !== 'running') return
      this.#session.tellError('settle a message', error)
      this.#unwritten.set(attempt, first)
      this.#held.callAt(attempt, this.#core.clock.monotonicMs() + SETTLE_AGAIN_MS)
    })
  }

  /** If it cannot be written, the message is still held: its lease lives as long as this process. */
  async #write(pending: PendingSettle, send: (pending: PendingSettle) => Promise<Written>): Promise<void> {
    const { attempt } = pending
    this.#held.drop(attempt)
    const written = await send(pending).catch((error: unknown) => {
      this.#held.hold(attempt, attempt.timeoutAtMs)
      throw error
    })
    this.#core.instrumentation.attemptEnded(written.pending, written.answer)
    if (written.answer === 'lost') throw noLongerHeld(attempt, 'Its lease was lost.')
  }

  async #send(pending: PendingSettle): Promise<Written> {
    return { pending, answer: await this.#session.settleNow(pending.request) }
  }

  /** If the store refuses the data, the message becomes a dead letter. A caller could settle it in another way instead. */
  async #sendOrRefuse(pending: PendingSettle): Promise<Written> {
    const { settled, failure, refusal } = await settleApart(this.#core, [pending], (requests) =>
      Promise.all(requests.map((request) => this.#session.settleNow(request))),
    )
    const [written] = settled
    if (written === undefined) throw failure ?? refusal
    return written
  }

  /** A message is no longer the caller's once its cancel arrives; the settle reports that to the store. */
  #cancel({ token, position, reason }: CancelNotice): boolean {
    const attempt = [...this.#held.running].find((one) => one.token === token && one.position === position)
    if (attempt !== undefined) this.#held.cancel(attempt, reason)
    return false
  }

  /** See `LocalWorker`. */
  cancelled(id: string, reason: string | null): LocalCancel {
    this.#session.noteCancelled(id, reason)
    const attempt = [...this.#held.running].find((one) => one.job.id === id)
    if (attempt === undefined) return 'unknown'
    this.#held.cancel(attempt, reason)
    return 'dropped'
  }

  /** A caller holds the messages that get() has returned, not those it is about to return. */
  paused(queue: string): void {
    if (queue === this.name) this.#session.notePaused(queue, this.#core.clock.monotonicMs())
  }

  #lose(tokens: ReadonlySet<Token>): void {
    for (const attempt of this.#held.lose(this.#held.running, tokens)) this.#held.drop(attempt)
    this.#session.forget(tokens)
  }
}

/** A claimed message, with its outcome if it is not to be given out. */
interface TakenIn {
  readonly attempt: Attempt
  readonly outcome: Outcome | null
}

interface Claimed {
  readonly messages: readonly Message[]
  /** Whether it brought messages that no caller gets. */
  readonly passedOver: boolean
}

type Written = SplitAnswer['settled'][number]

function noLongerHeld({ job }: Attempt, why: string): HoldfastError {
  return new HoldfastError('HF_LEASE_LOST', `Message ${job.id} is no longer held. ${why}`)
}
