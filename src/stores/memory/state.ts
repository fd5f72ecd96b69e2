/**
 * The state of the in-memory store, and the moves that its methods consist of. Each runs between two awaits, which makes each
 * method one atomic step.
 */
import { crashOutcome, crashRecord, type CrashOutcome } from '../../job/crash.ts'
import type { AttemptError } from '../../job/failure.ts'
import type { FlushId, WorkerId } from '../../job/ids.ts'
import type { Due, NewJob } from '../../job/record.ts'
import { comesBack, type Settlement } from '../../job/settlement.ts'
import type { FinalState } from '../../job/states.ts'
import { assertNever } from '../../std/never.ts'
import type { Clock } from '../../std/clock.ts'
import type { Random } from '../../std/random.ts'
import { Listeners } from '../listeners.ts'
import { MAX_ATTEMPT_RECORDS, MAX_SCAN, type EnqueueAnswer, type WakeUp } from '../store.ts'
import { remember, startOver, type Ending, type Entry, type LeaseEntry } from './entry.ts'
import { Leases } from './leases.ts'
import { Shelves, type OnMove } from './shelves.ts'
import { UniqueKeys } from './unique-keys.ts'

/** Answer for a repeat of the flush. Null means that all jobs were inserted, which is the common case. */
interface FlushMemory {
  readonly at: number
  readonly answers: readonly EnqueueAnswer[] | null
}

export interface MemoryStateParts {
  readonly clock: Pick<Clock, 'now'>
  readonly random: Random
  readonly maxFinished: number
  /** Maximum number of jobs that a list or bulk change scans. @default MAX_SCAN */
  readonly maxScan?: number
  /** For tests that keep a history. */
  readonly onMove?: OnMove
}

export class MemoryState {
  readonly clock: Pick<Clock, 'now'>
  readonly random: Random
  readonly maxFinished: number
  readonly maxScan: number
  readonly shelves: Shelves
  readonly leases = new Leases()
  readonly keys = new UniqueKeys()
  readonly flushes = new Map<FlushId, FlushMemory>()
  readonly listeners = new Listeners()
  #hints: WakeUp[] = []

  constructor({ clock, random, maxFinished, maxScan = MAX_SCAN, onMove }: MemoryStateParts) {
    this.clock = clock
    this.random = random
    this.maxFinished = maxFinished
    this.maxScan = maxScan
    this.shelves = new Shelves(this.keys, onMove)
  }

  now(): number {
    return this.clock.now()
  }

  /** Sent after the step, so that listeners never see half of one. */
  hint(hint: WakeUp): void {
    if (this.listeners.size > 0) this.#hints.push(hint)
  }

  tellHints(): void {
    if (this.#hints.length === 0) return
    const hints = this.#hints
    this.#hints = []
    for (const hint of hints) this.listeners.tell(hint)
  }

  /** A time in the past means now: it must not buy a head start. */
  dueAt(due: Due, now = this.now()): number {
    return 'inMs' in due ? now + due.inMs : Math.max(due.atMs, now)
  }

  /** Writes a settlement, and ends the job's position in its lease. */
  settle(entry: Entry, settlement: Settlement, by: { worker: WorkerId; runMs: number }): void {
    this.leases.close(entry)
    if (entry.cancel !== null && comesBack(settlement))
      this.finish(entry, 'cancelled', { reason: entry.cancel.reason })
    else this.#write(entry, settlement, by)
  }

  #write(entry: Entry, settlement: Settlement, by: { worker: WorkerId; runMs: number }): void {
    switch (settlement.type) {
      case 'completed':
        return this.finish(entry, 'completed', {
          result: settlement.result,
          resultDropped: settlement.resultDropped,
          ...by,
        })
      case 'dead':
        return this.finish(entry, 'dead', { error: settlement.error })
      case 'cancelled':
        return this.finish(entry, 'cancelled', { reason: settlement.reason })
      case 'retry':
        return this.schedule(entry, settlement.delayMs, settlement.error)
      case 'snooze':
        entry.attempt--
        return this.schedule(entry, settlement.delayMs, settlement.error ?? entry.error)
      case 'release':
      case 'confirm':
        return this.release(entry)
      default:
        return assertNever(settlement)
    }
  }

  /** Makes the job ready in its old place, without using an attempt. */
  release(entry: Entry): void {
    if (entry.cancel !== null) return this.finish(entry, 'cancelled', { reason: entry.cancel.reason })
    entry.attempt--
    this.shelves.take(entry)
    this.shelves.put(entry, 'ready')
    this.hint({ type: 'ready', queue: entry.job.queue })
  }

  schedule(entry: Entry, delayMs: number, error: AttemptError | null): void {
    this.shelves.take(entry)
    entry.error = error
    entry.dueAt = this.now() + delayMs
    this.shelves.put(entry, 'scheduled')
    this.hint({ type: 'due', inMs: delayMs })
  }

  /** Moves a waiting (or replayed) job to another due time, and replaces its facts if others are given. */
  reschedule(entry: Entry, dueAt: number, job: NewJob = entry.job): void {
    this.shelves.take(entry)
    this.#putBack(entry, dueAt, job)
  }

  /** The same, for a new job that replaces this one: without attempts. */
  replace(entry: Entry, dueAt: number, job: NewJob): void {
    this.shelves.take(entry)
    startOver(entry)
    this.#putBack(entry, dueAt, job)
  }

  /** Only for a job that is off its old shelf, because queue, rank and due time say where it is. */
  #putBack(entry: Entry, dueAt: number, job: NewJob): void {
    entry.job = job
    entry.dueAt = dueAt
    this.shelves.put(entry, dueAt > this.now() ? 'scheduled' : 'ready')
    this.hintWaiting(entry)
  }

  hintWaiting(entry: Entry): void {
    if (entry.state === 'ready') this.hint({ type: 'ready', queue: entry.job.queue })
    else this.hint({ type: 'due', inMs: entry.dueAt - this.now() })
  }

  finish(entry: Entry, to: FinalState, facts: Partial<Ending> & { readonly error?: AttemptError }): void {
    this.shelves.take(entry)
    const { result = null, resultDropped = false, runMs = 0, reason = null, worker = null } = facts
    entry.end = { at: this.now(), result, resultDropped, runMs, reason, worker }
    if (facts.error !== undefined) entry.error = facts.error
    entry.cancel = null
    this.shelves.put(entry, to)
    if (this.shelves.finished[to].size > this.maxFinished) this.shelves.forgetOldest(to)
  }

  /** For a job whose worker was lost and whose lease is already revoked. */
  crashed(entry: Entry, { worker, claimedAt }: LeaseEntry, mayHaveRun: boolean): CrashOutcome {
    const { attempt, cancel } = entry
    const { maxCrashes } = entry.job
    const cancelled = cancel !== null
    const before = { worker, attempt, crashes: entry.crashes, maxCrashes, cancelled, mayHaveRun }
    const outcome = crashOutcome(before, this.random)
    const { to, error, crashes, delayMs } = outcome
    entry.crashes = crashes
    const record = crashRecord(error, worker, claimedAt, this.now())
    if (record !== null) remember(entry, record, MAX_ATTEMPT_RECORDS)
    if (error === null) {
      this.release(entry)
    } else if (to === 'cancelled') {
      this.finish(entry, 'cancelled', { reason: cancel?.reason ?? null })
    } else if (to === 'dead') {
      this.finish(entry, 'dead', { error })
    } else {
      entry.attempt--
      this.schedule(entry, delayMs, error)
    }
    return outcome
  }
}
