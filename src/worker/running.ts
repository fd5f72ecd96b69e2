/** The handlers that run in a worker's slots, from their start to their return, timeout or abort. */
import type { Core } from '../core/core.ts'
import type { AbortWhy } from '../errors.ts'
import { toError, type Outcome } from '../job/settlement.ts'
import type { Attempt } from './attempt.ts'
import { execute, outcomeOfAbort } from './execute.ts'
import type { WorkerSettings } from './options.ts'
import type { Reporter } from './reporter.ts'
import { timeoutOf } from './settling.ts'
import { throughBatch } from './through-batch.ts'
import { Timeouts } from './timeouts.ts'

export interface RunningParts {
  readonly core: Core
  readonly settings: WorkerSettings
  readonly reporter: Reporter
  readonly onStarted: (attempt: Attempt) => void
  /** A handler has returned, and its slot is free. The outcome is null if the attempt lost its lease. */
  readonly onEnded: (attempt: Attempt, outcome: Outcome | null) => void
  /** A handler ignored its abort: this is the outcome of the job, although the slot stays taken until it returns. */
  readonly onGivenUp: (attempt: Attempt, outcome: Outcome) => void
}

/** A handler that ignores its abort is given up after this long; its slot stays taken until it returns. */
export const ABORT_GRACE_MS = 5_000

export class Running {
  readonly attempts = new Set<Attempt>()
  readonly #parts: RunningParts
  readonly #timeouts: Timeouts
  #taken = 0

  constructor(parts: RunningParts) {
    this.#parts = parts
    this.#timeouts = new Timeouts(parts.core.clock, this.attempts, (attempt) => this.#overdue(attempt))
  }

  /** Slots in use: a batch takes one, however many jobs are in it. */
  get taken(): number {
    return this.#taken
  }

  start(attempt: Attempt): void {
    const { core, settings, reporter, onStarted } = this.#parts
    const nowMs = core.clock.monotonicMs()
    attempt.begin(nowMs, timeoutOf(core, attempt.job, settings.jobs.get(attempt.job.name)))
    // The first of a batch takes the slot for all of them.
    if (attempt.batch?.begun() ?? true) this.#taken++
    this.attempts.add(attempt)
    onStarted(attempt)
    this.#timeouts.set(attempt, nowMs + attempt.timeoutMs)
    const { events } = core
    if (events.has('job.started')) events.emit('job.started', { ...attempt.facts, waitMs: attempt.waitMs })
    if (attempt.batch === undefined) void this.#execute(attempt)
    else throughBatch(core, attempt, settings.jobs, reporter, this.#ended)
  }

  abort(attempt: Attempt, why: AbortWhy, message: string): void {
    attempt.stop(why, message)
    this.#timeouts.set(attempt, this.#parts.core.clock.monotonicMs() + ABORT_GRACE_MS)
  }

  /** The handler ignored its abort: the job need not wait for it, only its slot does. */
  giveUp(attempt: Attempt, why: AbortWhy): void {
    this.#parts.core.events.emit('job.stuck', { ...attempt.facts, why })
    this.#parts.onGivenUp(attempt, outcomeOfAbort(attempt))
  }

  /** No timeout fires any more. */
  clear(): void {
    this.#timeouts.clear()
  }

  async #execute(attempt: Attempt): Promise<void> {
    const { core, settings, reporter } = this.#parts
    this.#ended(attempt, await execute(core, attempt, settings.jobs, reporter))
  }

  readonly #ended = (attempt: Attempt, outcome: Outcome | null): void => {
    attempt.returned((late) =>
      this.#parts.core.events.emit('job.unhandled', { ...attempt.facts, error: toError(late) }),
    )
    this.attempts.delete(attempt)
    if (attempt.batch?.ended(attempt) ?? true) this.#taken--
    this.#parts.onEnded(attempt, outcome)
  }

  /** Fires twice: the timeout aborts the attempt; if the handler is still running after the grace period, it is given up. */
  #overdue(attempt: Attempt): void {
    const why = attempt.abortedFor
    if (why === undefined)
      this.abort(attempt, 'timeout', `The attempt ran longer than ${attempt.timeoutMs} ms.`)
    else this.giveUp(attempt, why)
  }
}
