/**
 * The attempts that this process holds: timeouts, cancels, lost leases, handlers that ignore their abort signal, and
 * what is written of each attempt. The worker, the manual queue and the test kit hold theirs here.
 */
import type { Core } from '../core/core.ts'
import type { AbortWhy } from '../errors.ts'
import type { Token } from '../job/ids.ts'
import type { Outcome } from '../job/settlement.ts'
import { toError } from '../std/text.ts'
import type { Report } from '../stores/store.ts'
import type { Attempt, AttemptWatcher } from './attempt.ts'
import { execute, failed, outcomeOfAbort, type Execution } from './execute.ts'
import { Reporter } from './reporter.ts'
import { settle, timeoutOf, type PendingSettle, type Policies } from './settling.ts'
import { tellWorkerError } from './worker-error.ts'

export interface AttemptsParts extends Policies {
  readonly core: Core
  /** How long an aborted attempt may run on before it is settled without its handler. */
  readonly graceMs: number
  /** Told of what runs: names it while the event loop is blocked. */
  readonly loop?: { started(attempt: Attempt): void; ended(attempt: Attempt): void }
  /** A handler has returned, and its slot is free. The outcome is null if the attempt lost its lease. */
  readonly onReturned?: (attempt: Attempt, outcome: Outcome | null) => void
  /** The time of an attempt was up before it had an outcome: this is to be written instead. */
  readonly onGivenUp: (pending: PendingSettle) => void
  /** Progress or log lines should be sent soon. */
  readonly onReportsDue?: () => void
}

const NO_REPORTS: readonly Report[] = Object.freeze([])

export class Attempts implements Execution, AttemptWatcher {
  readonly core: Core
  /** Started, and not returned yet. */
  readonly running = new Set<Attempt>()
  readonly #parts: AttemptsParts
  #reporter: Reporter | undefined
  #slotsTaken = 0
  #timerForMs = Infinity
  #cancelTimer: (() => void) | undefined

  constructor(parts: AttemptsParts) {
    this.#parts = parts
    this.core = parts.core
  }

  /** Slots in use: a batch takes one, however many jobs are in it. */
  get slotsTaken(): number {
    return this.#slotsTaken
  }

  get reporter(): Reporter {
    this.#reporter ??= new Reporter(this.core, () => this.#parts.onReportsDue?.())
    return this.#reporter
  }

  /** Progress and log lines since the last time. */
  takeReports(): readonly Report[] {
    return this.#reporter === undefined ? NO_REPORTS : this.#reporter.take()
  }

  // ── start and end ──────────────────────────────────────────────────────────

  /** The attempt starts now, and its timeout with it. Null, or its outcome if it cannot be started: it has failed. */
  start(attempt: Attempt, nowMs: number): Outcome | null {
    try {
      this.#begin(attempt, nowMs)
      return null
    } catch (error) {
      this.#tellError(attempt, 'start', error)
      if (attempt.phase === 'waiting') attempt.begin(nowMs, 0, undefined)
      return failed(error)
    }
  }

  #begin(attempt: Attempt, nowMs: number): void {
    const { job } = attempt
    const definition = this.#parts.definitionOf(job.name)
    attempt.begin(nowMs, timeoutOf(this.core, job, definition), definition)
    this.hold(attempt, nowMs + attempt.timeoutMs)
    this.core.instrumentation.attemptStarted(attempt)
  }

  /** The attempt is running, or runs again, and its time is up then. */
  hold(attempt: Attempt, untilMs: number): void {
    attempt.phase = 'running'
    this.running.add(attempt)
    this.#parts.loop?.started(attempt)
    this.callAt(attempt, untilMs)
  }

  /** Starts the attempt and runs its handler in a slot. */
  run(attempt: Attempt, nowMs: number): void {
    // The first job of a batch takes the slot for all of them.
    if (attempt.batch === undefined || attempt.batch.begun()) this.#slotsTaken++
    const failure = this.start(attempt, nowMs)
    if (failure === null) execute(this, attempt)
    else this.ended(attempt, failure)
  }

  /** The handler has returned. */
  ended(attempt: Attempt, outcome: Outcome | null): void {
    try {
      attempt.returned(this)
      this.core.instrumentation.handlerEnded(attempt, outcome)
      if (attempt.batch === undefined || attempt.batch.ended(attempt)) this.#slotsTaken--
      this.drop(attempt)
      this.#parts.onReturned?.(attempt, outcome)
    } catch (error) {
      this.#tellError(attempt, 'end', error)
      if (outcome !== null) this.#settleAnyway(attempt, outcome)
    }
  }

  /** The attempt no longer runs here. */
  drop(attempt: Attempt): void {
    if (this.running.delete(attempt)) this.#parts.loop?.ended(attempt)
  }

  lateRejection(attempt: Attempt, reason: unknown): void {
    this.core.events.emit('job.unhandled', { ...attempt.facts, error: toError(reason) })
  }

  /** The outcome of an attempt, ready to be written. Null if it has one already, or lost its lease. */
  conclude(attempt: Attempt, outcome: Outcome): PendingSettle | null {
    if (attempt.phase === 'settled' || attempt.phase === 'lost') return null
    attempt.phase = 'settled'
    return settle(this.core, attempt, outcome, this.#parts)
  }

  // ── told to end ────────────────────────────────────────────────────────────

  /** Aborts the attempt. If it is still running after the grace period, it is settled without its handler. */
  stop(attempt: Attempt, why: AbortWhy, message: string): void {
    attempt.stop(why, message)
    const { graceMs } = this.#parts
    if (graceMs > 0) this.callAt(attempt, this.#now() + graceMs)
    else this.giveUp(attempt)
  }

  /** Aborts the attempt, unless it was told to end before. */
  cancel(attempt: Attempt, reason: string | null): void {
    if (attempt.abortedFor !== undefined) return
    attempt.cancelReason = reason
    this.stop(attempt, 'cancelled', reason ?? 'The job was cancelled.')
  }

  /** The worker is shutting down. An attempt that was told to end before keeps the time that it was given then. */
  interrupt(attempt: Attempt): void {
    if (attempt.abortedFor === undefined) this.stop(attempt, 'shutdown', 'The worker is shutting down.')
  }

  /** The handler ignored its abort signal. Its job is settled now; the slot stays taken until the handler returns. */
  giveUp(attempt: Attempt): void {
    // Both the attempt's own time and that of a stop may be over.
    if (attempt.phase === 'settled') return
    const { graceMs, onGivenUp } = this.#parts
    if (graceMs > 0)
      this.core.events.emit('job.stuck', { ...attempt.facts, why: attempt.abortedFor ?? 'shutdown' })
    const pending = this.conclude(attempt, outcomeOfAbort(attempt))
    if (pending !== null) onGivenUp(pending)
  }

  /** The leases of these attempts are gone. Aborts what runs; nothing of it is written. */
  lose(attempts: Iterable<Attempt>, tokens: ReadonlySet<Token>): Attempt[] {
    const lost = [...attempts].filter(({ token, phase }) => tokens.has(token) && isOpen(phase))
    const nowMs = this.#now()
    for (const attempt of lost) {
      const wasRunning = attempt.phase === 'running'
      attempt.phase = 'lost'
      if (wasRunning) {
        attempt.stop('lease_lost', 'The lease was taken away: another worker has this job now.')
        if (this.#parts.graceMs > 0) this.callAt(attempt, nowMs + this.#parts.graceMs)
      }
      this.core.instrumentation.attemptLost(attempt, attempt.runMs(nowMs))
    }
    return lost
  }

  // ── one timer for all ──────────────────────────────────────────────────────

  /**
   * Acts on the attempt then, if it is still running. Jobs of one kind share a timeout, so the deadline of a new attempt
   * is nearly always later than the one that the timer is set for, and starting a job sets no timer.
   */
  callAt(attempt: Attempt, atMs: number): void {
    attempt.timeoutAtMs = atMs
    if (atMs < this.#timerForMs) this.#setTimer(atMs)
  }

  /** No timeout fires any more. */
  clear(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#timerForMs = Infinity
  }

  #setTimer(atMs: number): void {
    this.#cancelTimer?.()
    this.#timerForMs = atMs
    this.#cancelTimer = this.core.clock.after(Math.max(1, atMs - this.#now()), () => this.#fire())
  }

  #fire(): void {
    this.clear()
    const nowMs = this.#now()
    for (const attempt of this.running) {
      if (attempt.timeoutAtMs > nowMs) continue
      attempt.timeoutAtMs = Infinity
      try {
        this.#overdue(attempt)
      } catch (error) {
        this.#tellError(attempt, 'end', error)
        this.#settleAnyway(attempt, outcomeOfAbort(attempt))
      }
    }
    let nextMs = Infinity
    for (const attempt of this.running) nextMs = Math.min(nextMs, attempt.timeoutAtMs)
    if (nextMs < this.#timerForMs) this.#setTimer(nextMs)
  }

  /** Fires twice: the timeout aborts the attempt; after the grace period, the worker gives up on its handler. */
  #overdue(attempt: Attempt): void {
    if (attempt.abortedFor !== undefined) this.giveUp(attempt)
    else this.stop(attempt, 'timeout', `The attempt ran longer than ${attempt.timeoutMs} ms.`)
  }

  // ── when something goes wrong here, not in a handler ────────────────────────

  /** Puts the outcome on its way, unless that was done before: the job must not stay open until this process ends. */
  #settleAnyway(attempt: Attempt, outcome: Outcome): void {
    try {
      const pending = this.conclude(attempt, outcome)
      if (pending !== null) this.#parts.onGivenUp(pending)
    } catch (error) {
      this.#tellError(attempt, 'settle', error)
    }
  }

  #tellError({ worker, job }: Attempt, doing: string, error: unknown): void {
    tellWorkerError(this.core, worker, `${doing} job ${job.id}`, error)
  }

  #now(): number {
    return this.core.clock.monotonicMs()
  }
}

function isOpen(phase: Attempt['phase']): boolean {
  return phase === 'waiting' || phase === 'running'
}
