/**
 * Starts what is claimed, in order, while there are free slots and the leases are sure. A job starts only if the store was
 * asked about it a moment ago and few enough open jobs stand before it: the two promises of `Store` ("Starts"). The second
 * one is kept by `StartGate`.
 */
import type { Core } from '../core/core.ts'
import type { Outcome } from '../job/settlement.ts'
import { Attempt } from './attempt.ts'
import type { Attempts } from './attempts.ts'
import type { Backlog } from './backlog.ts'
import { failed, lateOutcome } from './execute.ts'
import { joinBatch, type Gathered } from './gathering.ts'
import type { Session } from './session.ts'
import { StartGate } from './start-gate.ts'
import { tellWorkerError } from './worker-error.ts'

export interface StartsParts {
  readonly core: Core
  readonly slots: number
  readonly backlog: Backlog
  readonly attempts: Attempts
  readonly session: () => Pick<Session, 'isSureAt' | 'mayStart' | 'unknownJobs' | 'beatNow'>
  readonly isOpen: () => boolean
  readonly conclude: (attempt: Attempt, outcome: Outcome) => void
  /** More can start once the event loop has had its turn: call `startAfterTurn` then. */
  readonly onTurnNeeded: () => void
}

/**
 * Jobs to start before the event loop gets its turn. Handlers that return at once would otherwise run until the backlog is
 * empty before the next claim is sent, and the store would wait for us meanwhile (0.8 × of the rate on PostgreSQL).
 */
const STARTS_IN_A_ROW = 128

export class Starts {
  readonly #parts: StartsParts
  readonly #gate: StartGate
  /** Jobs that left the backlog and are open in the store: started or concluded, and their settle is not answered. */
  #out = 0
  #inARow = 0
  /** True while jobs are being started: a handler that returns at once must not start the next one itself. */
  #isStarting = false
  /** As many were started in a row as may be. */
  #needsTurn = false

  constructor(parts: StartsParts) {
    this.#parts = parts
    this.#gate = new StartGate(parts.slots, () => parts.session().beatNow())
  }

  /** The event loop has just had its turn. True if more could start after the next one. */
  startAfterTurn(): boolean {
    this.#inARow = 0
    this.#needsTurn = false
    this.start()
    return this.#needsTurn
  }

  start(): void {
    if (this.#isStarting) return
    this.#isStarting = true
    try {
      this.#startAll()
    } finally {
      this.#isStarting = false
    }
  }

  #startAll(): void {
    const { backlog, attempts, core, slots, isOpen } = this.#parts
    const { clock } = core
    const session = this.#parts.session()
    while (backlog.size > 0 && attempts.slotsTaken < slots && isOpen()) {
      const nowMs = clock.monotonicMs()
      if (!session.isSureAt(nowMs)) return
      if (this.#inARow >= STARTS_IN_A_ROW) return this.#waitForTurn()
      const next = this.#next(nowMs)
      if (next === undefined) return
      if (!(next instanceof Attempt)) this.#startBatch(next, nowMs)
      else if (!this.#expire(next, nowMs)) this.#begin(next, nowMs)
    }
  }

  /** It was concluded without having been started. */
  left(): void {
    this.#out++
  }

  /** So many are settled or lost. */
  closed(count: number): void {
    this.#out -= count
  }

  /** For the session: the number of open jobs that may stand before a start. */
  readonly atOnce = {
    sending: (): number => {
      const { backlog, session } = this.#parts
      const open = this.#out + (backlog.gathers ? backlog.size : 0)
      return this.#gate.sending(open, session().unknownJobs)
    },
    answered: (sent: number): void => this.#gate.answered(sent),
  }

  /** Takes what is to be started now from the backlog. */
  #next(nowMs: number): Attempt | Gathered | undefined {
    const { backlog } = this.#parts
    if (!backlog.gathers) {
      const { first } = backlog
      return first !== undefined && this.#mayStart(first, this.#out, nowMs) ? backlog.take(nowMs) : undefined
    }
    const next = backlog.take(nowMs)
    if (next === undefined) return undefined
    const attempts = next instanceof Attempt ? [next] : next.attempts
    const [first, last] = [attempts[0], attempts.at(-1)]
    if (first === undefined || last === undefined) return undefined
    // A batch may overtake plain jobs, and they may overtake a batch that gathers.
    const before = this.#out + attempts.length - 1 + backlog.countBefore(last)
    if (this.#mayStart(first, before, nowMs)) return next
    backlog.putBack(next)
    return undefined
  }

  #mayStart({ askedMs }: Attempt, before: number, nowMs: number): boolean {
    const session = this.#parts.session()
    if (!session.mayStart(askedMs, nowMs)) return false
    return this.#gate.allows(before, session.unknownJobs, !this.#parts.backlog.gathers, nowMs)
  }

  #startBatch(gathered: Gathered, nowMs: number): void {
    const attempts = gathered.attempts.filter((attempt) => !this.#expire(attempt, nowMs))
    joinBatch(this.#parts.core, gathered, attempts)
    for (const attempt of attempts) this.#begin(attempt, nowMs)
  }

  #begin(attempt: Attempt, nowMs: number): void {
    this.#inARow++
    this.#out++
    this.#parts.attempts.run(attempt, nowMs)
  }

  /** Concludes an attempt that is too late to be started; false if it is in time. */
  #expire(attempt: Attempt, nowMs: number): boolean {
    let outcome: Outcome | null
    try {
      outcome = lateOutcome(attempt, nowMs)
    } catch (error) {
      // It has left the backlog: without an outcome, nobody would ever look at it again.
      tellWorkerError(this.#parts.core, attempt.worker, `start job ${attempt.job.id}`, error)
      outcome = failed(error)
    }
    if (outcome !== null) this.#parts.conclude(attempt, outcome)
    return outcome !== null
  }

  #waitForTurn(): void {
    if (this.#needsTurn) return
    this.#needsTurn = true
    this.#parts.onTurnNeeded()
  }
}
