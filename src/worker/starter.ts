/** Starts what is claimed, in order, while there are free slots and the leases are sure. */
import type { Core } from '../core/core.ts'
import type { Outcome } from '../job/settlement.ts'
import { Attempt } from './attempt.ts'
import type { Gathered } from './backlog.ts'
import type { Claimed } from './claimed.ts'
import { lateOutcome } from './execute.ts'
import type { Running } from './running.ts'
import { joinBatch } from './through-batch.ts'

export interface StarterParts {
  readonly core: Core
  readonly slots: number
  readonly claimed: Claimed
  readonly running: Running
  readonly mayStart: () => boolean
  readonly conclude: (attempt: Attempt, outcome: Outcome) => void
}

/**
 * Jobs to start before the event loop gets its turn. Handlers that return at once would otherwise run until the backlog is
 * empty before the next claim is sent, and the store would wait for us meanwhile (0.8 × of the rate on PostgreSQL).
 */
const STARTS_IN_A_ROW = 128

export class Starter {
  readonly #parts: StarterParts
  #inARow = 0
  #endBreak: (() => void) | undefined

  constructor(parts: StarterParts) {
    this.#parts = parts
  }

  /** `afterBreak`: the event loop has just had its turn. */
  start({ afterBreak = false } = {}): void {
    const { claimed, core, mayStart, running, slots } = this.#parts
    if (afterBreak) this.#inARow = 0
    while (claimed.backlog.size > 0 && running.taken < slots && mayStart()) {
      if (this.#inARow >= STARTS_IN_A_ROW) return this.#takeBreak()
      const next = claimed.next(core.clock.monotonicMs())
      if (next === undefined) return
      if (!(next instanceof Attempt)) this.#startBatch(next)
      else if (!this.#expire(next)) this.#begin(next)
    }
  }

  stop(): void {
    this.#endBreak?.()
  }

  #takeBreak(): void {
    this.#endBreak ??= this.#parts.core.clock.after(0, () => {
      this.#endBreak = undefined
      this.start({ afterBreak: true })
    })
  }

  /** Whether it is too late for this one: then it is over. */
  #expire(attempt: Attempt): boolean {
    const { core, conclude } = this.#parts
    const outcome = lateOutcome(attempt, core.clock.monotonicMs())
    if (outcome !== null) conclude(attempt, outcome)
    return outcome !== null
  }

  #startBatch(gathered: Gathered): void {
    const attempts = gathered.attempts.filter((attempt) => !this.#expire(attempt))
    joinBatch(this.#parts.core, gathered, attempts)
    for (const attempt of attempts) this.#begin(attempt)
  }

  #begin(attempt: Attempt): void {
    this.#inARow++
    this.#parts.claimed.left()
    this.#parts.running.start(attempt)
  }
}
