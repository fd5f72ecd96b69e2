/**
 * Carries out the plans of a worker: one loop that talks to the store. Each call settles what has finished, sends what
 * handlers have reported, and claims what there is room for. The driver decides nothing itself: see `plan.ts`.
 */
import type { Core } from '../core/core.ts'
import { newCounters } from '../core/instrumentation.ts'
import { isLasting, isRefusal, isStoreFailure } from '../errors.ts'
import { Bell } from '../std/bell.ts'
import { sleep } from '../std/clock.ts'
import type { Lease, Report, SettleAnswer } from '../stores/store.ts'
import {
  callAnswered,
  callBegun,
  callEnded,
  callFailed,
  callSucceeded,
  claimAnswered,
  handedOver,
  newRetryState,
  offerAnswered,
  plan,
  type LoopState,
  type PlannedCall,
  type Work,
} from './plan.ts'
import type { HandedLease } from './offers.ts'
import { settleApart } from './refused-settles.ts'
import type { Session } from './session.ts'
import { PendingSettlements, type PendingSettle } from './settling.ts'

export interface DriverParts {
  readonly core: Core
  readonly state: LoopState
  readonly session: Session
  /** What the worker has in hand; the driver adds what it holds itself. */
  readonly work: () => Omit<Work, 'settles' | 'reportsDue'>
  readonly takeReports: () => readonly Report[]
  /** The event loop has had its turn: starts what may start. True if it should continue after the next turn. */
  readonly onTurn: () => boolean
  /** Releases jobs that could have been started at this time. */
  readonly giveBack: (staleMs: number) => void
  /** So many settles were answered. */
  readonly onSettled: (count: number) => void
  readonly onLease: (lease: Lease, askedMs: number) => void
  /** The same lease could not be taken in: nothing of it may stay. */
  readonly onLeaseFailed: (lease: Lease) => void
  /** The answer of a call is taken in: it may have brought jobs, and its settles may have made room. */
  readonly onAnswer: () => void
  /** A call has ended, well or badly. */
  readonly onCallEnded: () => void
}

interface CallAnswer {
  /** What was written in the end, each with the store's answer at the same index. */
  readonly settled: readonly PendingSettle[]
  readonly answers: readonly SettleAnswer[]
  /** Settles without an answer, because the store failed meanwhile: to be sent again. */
  readonly left: readonly PendingSettle[]
  /** Why some are left. */
  readonly failure: unknown
  /** Settles that the store refuses in every form. */
  readonly stuck: readonly PendingSettle[]
  /** Why some are stuck. */
  readonly refusal: unknown
  readonly leases: readonly Lease[]
  /** Whether the claim was made, if there was one: no leases mean then that nothing was claimable. */
  readonly claimed: boolean
  /** When the store was asked for the leases. */
  readonly sentMs: number
  /** Whether the offer is open. */
  readonly offered: boolean
  /** What was handed over under it meanwhile. */
  readonly handed: readonly HandedLease[]
}

/** Longest wait without a look at the plan. */
const LONGEST_WAIT_MS = 60_000
/** A settle that the store refuses in every form is tried again after this long. */
const STUCK_RETRY_MS = 10_000
const NOTHING_LEFT: readonly PendingSettle[] = []
const ALL_ANSWERED = { left: NOTHING_LEFT, failure: null, stuck: NOTHING_LEFT, refusal: null } as const

export class Driver {
  readonly counters = newCounters()
  readonly #parts: DriverParts
  readonly #state: LoopState
  readonly #bell: Bell
  readonly #pending = new PendingSettlements()
  /** Pauses after turns that failed. Those after calls that failed are in the state. */
  readonly #turns = newRetryState()
  #reportsDue = false
  /** True while a turn is being made: it looks at everything, so that nothing needs to ring. */
  #inTurn = false
  #ended = false

  constructor(parts: DriverParts) {
    this.#parts = parts
    this.#state = parts.state
    this.#bell = new Bell(parts.core.clock)
  }

  /** There may be something to do. */
  ring(): void {
    if (!this.#inTurn) this.#bell.ring()
  }

  /** Progress or log lines have waited long enough. */
  reportsDue(): void {
    this.#reportsDue = true
    this.ring()
  }

  /** Puts a settlement on its way to the store. */
  settle(pending: PendingSettle): void {
    this.#pending.add(pending)
  }

  /** Nothing waits to be settled, no call is under way whose answer may bring more, and no offer is open. */
  get isDone(): boolean {
    return this.#pending.isEmpty && this.#state.calls === 0 && !this.#state.offers
  }

  /** Takes in a lease that was handed over. */
  takeHanded({ lease, askedMs }: HandedLease): void {
    const errors: unknown[] = []
    handedOver(this.#state, lease.jobs.length)
    this.#takeInLease(lease, askedMs, errors)
    this.#parts.onAnswer()
    for (const error of errors) this.#parts.session.tellError('take a job', error)
    this.ring()
  }

  /** No further call begins. */
  end(): void {
    this.#ended = true
    this.#bell.ring()
  }

  /** Resolves when the driver was ended and the last call is over. */
  async run(): Promise<void> {
    const { clock } = this.#parts.core
    let waitMs = 0
    while (!this.#ended) {
      if (waitMs > 0) await this.#bell.wait(waitMs)
      if (this.#ended) break
      // Lets all that finishes in this moment travel in one settle, and the process breathe between two turns.
      await sleep(clock, 0)
      waitMs = this.#turn()
    }
    while (this.#state.calls > 0) await this.#bell.wait(LONGEST_WAIT_MS)
  }

  /** Plans, and does what the plan says. Returns for how long there is nothing to do unless the bell rings. */
  #turn(): number {
    if (this.#ended) return 0
    const begunMs = this.#now()
    // Whatever rings meanwhile: what has failed would only fail again.
    if (begunMs < this.#turns.retryAtMs) return this.#turns.retryAtMs - begunMs
    this.#inTurn = true
    try {
      // The call first: then the store and the handlers that start now work at the same time.
      const first = this.#plan()
      if (first.call !== null) this.#begin(first.call)
      const isMoreToStart = this.#parts.onTurn()
      const next = this.#plan()
      if (next.giveBackMs !== null) this.#parts.giveBack(next.giveBackMs)
      callSucceeded(this.#turns)
      if (isMoreToStart || next.giveBackMs !== null || next.call !== null) return 0
      return Math.min(Math.max(1, next.wakeAtMs - this.#now()), LONGEST_WAIT_MS)
    } catch (error) {
      return this.#turnFailed(error, begunMs)
    } finally {
      this.#inTurn = false
    }
  }

  /** Returns how long to wait for the next turn. What waits to be started need not wait for it: others can run it. */
  #turnFailed(error: unknown, begunMs: number): number {
    const { session, giveBack } = this.#parts
    session.tellError('plan its next call', error)
    callFailed(this.#turns, begunMs, true, () => 1)
    try {
      giveBack(begunMs)
    } catch (another) {
      session.tellError('give back jobs', another)
    }
    return Math.max(1, this.#turns.retryAtMs - this.#now())
  }

  #plan(): ReturnType<typeof plan> {
    this.#pending.takeUp(this.#now())
    const work = { ...this.#parts.work(), settles: this.#pending.size, reportsDue: this.#reportsDue }
    return plan(this.#state, work, this.#now())
  }

  #begin(call: PlannedCall): void {
    const begunMs = this.#now()
    callBegun(this.#state, call, begunMs, () => this.#parts.core.random.float())
    if (call.claim !== null) this.#parts.session.claimSent()
    void this.#call(call, begunMs)
  }

  /** One call; it never rejects. */
  async #call(call: PlannedCall, begunMs: number): Promise<void> {
    const { claim } = call
    const settles = this.#pending.take()
    let left = settles
    try {
      const answer = await this.#send(settles, call)
      left = answer.left
      this.#pending.answered(settles)
      this.#pending.setAside(answer.stuck, this.#now() + STUCK_RETRY_MS)
      this.#takeIn(answer, call)
      if (left.length > 0) throw answer.failure
      if (answer.stuck.length > 0) this.#noteStuck(answer)
      callSucceeded(this.#state)
    } catch (error) {
      this.#failed('settle and claim', error, begunMs)
    } finally {
      this.#pending.answered(settles)
      this.#pending.putBack(left)
      callEnded(this.#state, claim)
      if (claim !== null) this.#parts.session.claimLanded()
      this.#bell.ring()
      this.#parts.onCallEnded()
    }
  }

  /** Throws if the store did not answer at all: then every settle is to be sent again. */
  async #send(settles: readonly PendingSettle[], { claim, offer }: PlannedCall): Promise<CallAnswer> {
    const { session, takeReports } = this.#parts
    this.#reportsDue = false
    const settle = settles.map(({ request }) => request)
    const reports = takeReports()
    try {
      const answer = await session.cycle({ settle, claim: claim?.request ?? null, reports, offer })
      const { settled, alive, ...rest } = answer
      return { ...ALL_ANSWERED, ...rest, settled: settles, answers: settled, claimed: alive }
    } catch (error) {
      if (settles.length === 0 || !isRefusal(error)) throw error
      // Before the settles: a job that has ended takes no more reports.
      if (reports.length > 0) await this.#sendReports(reports)
      return this.#sendApart(settles)
    }
  }

  /** Alone, and once: they are best effort. */
  async #sendReports(reports: readonly Report[]): Promise<void> {
    const { session } = this.#parts
    await session
      .cycle({ settle: [], claim: null, reports })
      .catch((error: unknown) => session.tellError('send reports', error))
  }

  /** The store refused the data of a settle. Without a claim: the next call claims again. */
  async #sendApart(settles: readonly PendingSettle[]): Promise<CallAnswer> {
    const { core, session } = this.#parts
    const { settled, ...others } = await settleApart(core, settles, async (settle) => {
      const answer = await session.cycle({ settle, claim: null })
      return answer.settled
    })
    return {
      settled: settled.map(({ pending }) => pending),
      answers: settled.map(({ answer }) => answer),
      ...others,
      leases: [],
      claimed: false,
      sentMs: 0,
      offered: false,
      handed: [],
    }
  }

  /** Whatever cannot be taken in, everything else is. Throws at the end if there was something. */
  #takeIn(
    { settled, answers, leases, claimed, sentMs, ...rest }: CallAnswer,
    { claim, offer }: PlannedCall,
  ): void {
    const { session, onSettled, onAnswer } = this.#parts
    const errors: unknown[] = []
    callAnswered(this.#state, this.#now())
    onSettled(settled.length)
    this.#tellEnds(settled, answers, errors)
    const taken = leases.reduce((count, lease) => count + lease.jobs.length, 0)
    if (claim !== null && claimed) claimAnswered(this.#state, claim, taken)
    if (offer !== null) offerAnswered(this.#state, rest.offered ? offer.jobs - taken : 0)
    for (const lease of leases) this.#takeInLease(lease, sentMs, errors)
    for (const { lease, askedMs } of rest.handed) {
      handedOver(this.#state, lease.jobs.length)
      this.#takeInLease(lease, askedMs, errors)
    }
    onAnswer()
    const [first, ...others] = errors
    for (const error of others) session.tellError('settle and claim', error)
    if (errors.length > 0) throw first
  }

  #tellEnds(settled: readonly PendingSettle[], answers: readonly SettleAnswer[], errors: unknown[]): void {
    const { instrumentation } = this.#parts.core
    const nowMs = this.#now()
    settled.forEach((ended, index) => {
      try {
        instrumentation.attemptEnded(ended, answers[index] as SettleAnswer, this.counters, nowMs)
      } catch (error) {
        errors.push(error)
      }
    })
  }

  #takeInLease(lease: Lease, sentMs: number, errors: unknown[]): void {
    const { onLease, onLeaseFailed } = this.#parts
    try {
      onLease(lease, sentMs)
    } catch (error) {
      errors.push(error)
      onLeaseFailed(lease)
    }
  }

  /** A store that refuses everything is not one refused settle: then the worker slows down. */
  #noteStuck({ settled, refusal }: CallAnswer): void {
    if (settled.length === 0) throw refusal
    this.#parts.session.tellError('settle and claim', refusal)
  }

  /** The store's client has told of outages and missing rights; the session tells of everything else. */
  #failed(doing: string, error: unknown, begunMs: number): void {
    this.#parts.session.tellError(doing, error)
    const isBug = !isStoreFailure(error) && !isRefusal(error)
    callFailed(this.#state, begunMs, isBug || isLasting(error), () => this.#parts.core.random.float())
  }

  #now(): number {
    return this.#parts.core.clock.monotonicMs()
  }
}
