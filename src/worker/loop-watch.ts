/**
 * Watches whether the event loop is blocked, for stores that renew leases from outside it. A timer reports each turn.
 * If it fires late, the loop was blocked, and the jobs that ran at the time are named. Renewals stop once the loop is
 * blocked for longer than its jobs may run, or for ten leases: then it would keep them without use.
 */
import type { Clock } from '../std/clock.ts'
import type { Pulse } from '../stores/store.ts'
import type { Attempt } from './attempt.ts'

export interface LoopWatchParts {
  readonly clock: Clock
  readonly leaseMs: number
  /** The attempts that run now. */
  readonly running: ReadonlySet<Attempt>
  /** When the newest heartbeat that has an answer was sent. */
  readonly lastBeatMs: () => number
  readonly onBlocked: (blockedMs: number, suspects: readonly Attempt[]) => void
}

const LONGEST_TURN_MS = 200
/** While nothing runs: no job can block the loop then, and each turn wakes an idle process up. */
const LONGEST_IDLE_TURN_MS = 1_000
/** Shorter blocks are not told. */
const WORTH_TELLING_MS = 1_000
const PATIENCE_LEASES = 10
const MOST_SUSPECTS = 20

export class LoopWatch {
  readonly #parts: LoopWatchParts
  readonly #turnMs: number
  readonly #idleTurnMs: number
  readonly #worthTellingMs: number
  #pulse: Pulse | null = null
  #nextTurnMs = 0
  /** Whether nothing ran when the timer was set. */
  #isIdle = false
  #cancelTimer: (() => void) | undefined
  #patienceMs = 0
  /** Ended since the turn that is overdue: a handler that blocks and then returns ends before any timer fires. */
  #justEnded: Attempt[] = []

  constructor(parts: LoopWatchParts) {
    const { leaseMs } = parts
    this.#parts = parts
    this.#turnMs = Math.min(LONGEST_TURN_MS, leaseMs / 10)
    this.#idleTurnMs = Math.min(LONGEST_IDLE_TURN_MS, leaseMs / 10)
    this.#worthTellingMs = Math.min(WORTH_TELLING_MS, leaseMs / 3)
  }

  begin(pulse: Pulse): void {
    this.end()
    this.#pulse = pulse
    for (const { job } of this.#parts.running) pulse.started(job.name)
    this.#setPatience(pulse, this.#neededMs())
    this.#turn(pulse)
  }

  end(): void {
    this.#cancelTimer?.()
    this.#pulse?.stop()
    this.#pulse = null
  }

  started({ job, timeoutMs }: Attempt): void {
    if (this.#pulse === null) return
    this.#pulse.started(job.name)
    // At once: its handler may block before the next turn.
    if (timeoutMs > this.#patienceMs && this.#patienceMs > 0) this.#setPatience(this.#pulse, timeoutMs)
    if (this.#isIdle) this.#turnNow(this.#pulse)
  }

  ended(attempt: Attempt): void {
    if (this.#pulse === null) return
    this.#pulse.ended(attempt.job.name)
    if (this.#lateMs() >= this.#worthTellingMs) this.#justEnded.push(attempt)
  }

  #turn(pulse: Pulse): void {
    pulse.turned()
    const { clock, running } = this.#parts
    this.#isIdle = running.size === 0
    const turnMs = this.#isIdle ? this.#idleTurnMs : this.#turnMs
    this.#nextTurnMs = clock.monotonicMs() + turnMs
    this.#cancelTimer = clock.after(turnMs, () => this.#turnNow(pulse))
  }

  #turnNow(pulse: Pulse): void {
    this.#cancelTimer?.()
    this.#tellIfLate()
    // A listener may have ended it.
    if (this.#pulse !== pulse) return
    this.#setPatience(pulse, this.#neededMs())
    this.#turn(pulse)
  }

  #tellIfLate(): void {
    const blockedMs = this.#lateMs()
    const ended = this.#justEnded
    this.#justEnded = []
    if (blockedMs < this.#worthTellingMs) return
    // The handler that blocked the loop began before most of the block, though maybe a little after the turn fell due:
    // a busy loop starts handlers before it gets to its timers.
    const latestStartMs = this.#nextTurnMs + blockedMs / 2
    const suspects = [...ended, ...this.#parts.running].filter(
      ({ startedMs = Infinity }) => startedMs <= latestStartMs,
    )
    this.#parts.onBlocked(blockedMs, suspects.slice(0, MOST_SUSPECTS))
  }

  #lateMs(): number {
    return this.#parts.clock.monotonicMs() - this.#nextTurnMs
  }

  #setPatience(pulse: Pulse, ms: number): void {
    this.#patienceMs = ms
    pulse.setPatience(ms)
  }

  /** 0 for a worker whose own heartbeats are not answered: it could not settle the jobs that it would hold on to. */
  #neededMs(): number {
    const { clock, leaseMs, running, lastBeatMs } = this.#parts
    let longestMs = PATIENCE_LEASES * leaseMs
    for (const { timeoutMs } of running) longestMs = Math.max(longestMs, timeoutMs)
    return clock.monotonicMs() - lastBeatMs() > longestMs ? 0 : longestMs
  }
}
