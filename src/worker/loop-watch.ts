/**
 * Whether the event loop turns, for stores that renew leases from outside of it. A timer notes each turn for them; when
 * it comes late, the loop stood still, and whatever ran at the time is told of by name. How long that is borne is
 * limited: a loop that stands still for longer than its jobs may take, or for ten leases, holds them for nothing.
 */
import type { Clock } from '../std/clock.ts'
import type { Pulse } from '../stores/store.ts'
import type { Attempt } from './attempt.ts'

export interface LoopWatchParts {
  readonly clock: Clock
  readonly leaseMs: number
  /** What runs now. */
  readonly running: ReadonlySet<Attempt>
  /** When the newest heartbeat that was answered had been sent. */
  readonly lastBeatMs: () => number
  readonly onBlocked: (blockedMs: number, suspects: readonly Attempt[]) => void
}

const LONGEST_TURN_MS = 200
/** A shorter block is hardly noticed by anybody. */
const WORTH_TELLING_MS = 1_000
const PATIENCE_LEASES = 10
const MOST_SUSPECTS = 20

export class LoopWatch {
  readonly #parts: LoopWatchParts
  readonly #turnMs: number
  readonly #worthTellingMs: number
  #pulse: Pulse | null = null
  #nextTurnMs = 0
  #callOff: (() => void) | undefined
  #patienceMs = 0
  /** Ended since the turn that is overdue: a handler that blocks and then returns is over before any timer fires. */
  #justEnded: Attempt[] = []

  constructor(parts: LoopWatchParts) {
    const { leaseMs } = parts
    this.#parts = parts
    this.#turnMs = Math.min(LONGEST_TURN_MS, leaseMs / 10)
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
    this.#callOff?.()
    this.#pulse?.stop()
    this.#pulse = null
  }

  started({ job, timeoutMs }: Attempt): void {
    if (this.#pulse === null) return
    this.#pulse.started(job.name)
    // At once: its handler may block before the next turn.
    if (timeoutMs > this.#patienceMs && this.#patienceMs > 0) this.#setPatience(this.#pulse, timeoutMs)
  }

  ended(attempt: Attempt): void {
    if (this.#pulse === null) return
    this.#pulse.ended(attempt.job.name)
    if (this.#lateMs() >= this.#worthTellingMs) this.#justEnded.push(attempt)
  }

  #turn(pulse: Pulse): void {
    pulse.turned()
    const { clock } = this.#parts
    this.#nextTurnMs = clock.monotonicMs() + this.#turnMs
    this.#callOff = clock.after(this.#turnMs, () => {
      this.#tellIfLate()
      // Whoever was told may have ended it.
      if (this.#pulse !== pulse) return
      this.#setPatience(pulse, this.#neededMs())
      this.#turn(pulse)
    })
  }

  #tellIfLate(): void {
    const blockedMs = this.#lateMs()
    const ended = this.#justEnded
    this.#justEnded = []
    if (blockedMs < this.#worthTellingMs) return
    // Whatever blocked it began before most of the block, though maybe a little after the turn fell due: a busy loop
    // starts handlers before it gets to its timers.
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

  /** None for a worker whose own heartbeats are not answered: it could not settle what it would hold on to. */
  #neededMs(): number {
    const { clock, leaseMs, running, lastBeatMs } = this.#parts
    let longestMs = PATIENCE_LEASES * leaseMs
    for (const { timeoutMs } of running) longestMs = Math.max(longestMs, timeoutMs)
    return clock.monotonicMs() - lastBeatMs() > longestMs ? 0 : longestMs
  }
}
