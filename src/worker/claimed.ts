/**
 * What a worker has claimed: the backlog, and which of it may start. A job starts only while the store was asked about it
 * a moment ago, and while few enough open jobs stand before it: the promises of `Store` ("Starts").
 */
import type { Token } from '../job/ids.ts'
import type { Lease } from '../stores/store.ts'
import { Attempt } from './attempt.ts'
import type { Backlog, Gathered } from './backlog.ts'
import type { Session } from './session.ts'
import { StartGate } from './start-gate.ts'

interface Received {
  readonly cancelled: { readonly attempt: Attempt; readonly reason: string | null }[]
  readonly paused: Attempt[]
}

export class Claimed {
  readonly backlog: Backlog
  readonly #gate: StartGate
  readonly #running: ReadonlySet<Attempt>
  readonly #session: () => Pick<Session, 'mayStart' | 'unknownJobs'>
  /** Jobs among them that lost a worker before. */
  suspects = 0
  /** Jobs that left the backlog and are open in the store: started or concluded, and their settle is not answered. */
  #out = 0

  constructor(
    backlog: Backlog,
    running: ReadonlySet<Attempt>,
    slots: number,
    session: () => Pick<Session, 'mayStart' | 'unknownJobs' | 'beatNow'>,
  ) {
    this.backlog = backlog
    this.#gate = new StartGate(slots, () => session().beatNow())
    this.#running = running
    this.#session = session
  }

  /** Takes in what a claim has brought, but for what was heard meanwhile: that must not start. */
  receive(lease: Lease, askedMs: number, { worker, news }: Session, nowMs: number): Received {
    const attempts = lease.jobs.map((job, place) => new Attempt(job, lease, place, worker, nowMs, askedMs))
    const received: Received = { cancelled: [], paused: [] }
    for (const attempt of attempts) {
      if (attempt.job.crashes > 0) this.suspects++
      const heard = news.about(lease, attempt.position, attempt.job, askedMs)
      if (heard?.type === 'cancelled') received.cancelled.push({ attempt, reason: heard.reason })
      else if (heard?.type === 'paused') received.paused.push(attempt)
    }
    this.backlog.add(lease.queue, attempts)
    const gone = new Set([...received.paused, ...received.cancelled.map(({ attempt }) => attempt)])
    if (gone.size > 0) this.backlog.keep((attempt) => !gone.has(attempt))
    return received
  }

  /**
   * What is to be given back of a queue that was paused at this time or before. What was claimed after that, was claimed
   * after the queue was resumed.
   */
  takePaused(queue: string, heardMs: number): Attempt[] {
    return this.backlog.take((one) => one.job.queue === queue && one.askedMs <= heardMs)
  }

  /** All that is not settled yet. */
  open(): Attempt[] {
    return [...this.backlog.all(), ...this.#running].filter(
      (one) => one.phase === 'waiting' || one.phase === 'running',
    )
  }

  /** Leases that must still stand. */
  openTokens(): Set<Token> {
    return new Set(
      this.open()
        .filter((attempt) => !attempt.commits)
        .map((attempt) => attempt.token),
    )
  }

  /** What is to be started now: it has left the backlog. */
  next(nowMs: number): Attempt | Gathered | undefined {
    const { backlog } = this
    if (!backlog.gathers) {
      const [first] = backlog.line
      return first !== undefined && this.#mayStart(first, this.#out, nowMs) ? backlog.next(nowMs) : undefined
    }
    const next = backlog.next(nowMs)
    if (next === undefined) return undefined
    const attempts = next instanceof Attempt ? [next] : next.attempts
    const [first, last] = [attempts[0], attempts.at(-1)]
    if (first === undefined || last === undefined) return undefined
    // A batch may overtake plain jobs, and they a batch that gathers.
    const before = this.#out + attempts.length - 1 + backlog.countBefore(last)
    if (this.#mayStart(first, before, nowMs)) return next
    backlog.putBack(next)
    return undefined
  }

  #mayStart({ askedMs }: Attempt, before: number, nowMs: number): boolean {
    const session = this.#session()
    if (!session.mayStart(askedMs)) return false
    return this.#gate.allows(before, session.unknownJobs, !this.backlog.gathers, nowMs)
  }

  /** It is started, or concluded without that. */
  left(): void {
    this.#out++
  }

  /** So many of those are settled, or lost. */
  closed(count: number): void {
    this.#out -= count
  }

  /** Whether something waits for a settle to be answered. */
  get stalled(): boolean {
    return this.#gate.stalled
  }

  /** For the session. */
  readonly atOnce = {
    sending: (): number => {
      const open = this.#out + (this.backlog.gathers ? this.backlog.size : 0)
      return this.#gate.sending(open, this.#session().unknownJobs)
    },
    answered: (sent: number): void => this.#gate.answered(sent),
  }
}
