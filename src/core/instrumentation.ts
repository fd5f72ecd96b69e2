/**
 * The seam for instrumentation: one place around an attempt (start, context, end) and one around an enqueue. The
 * current-job context, the events that become log lines and the counters of a worker are fed from here; metrics and
 * traces add an `Instrument`. Without a listener nothing is built.
 */
import type { AttemptEnd, AttemptFacts, Events } from '../job/events.ts'
import type { Inherited } from '../job/new-job.ts'
import type { NewJob } from '../job/record.ts'
import { toError, type Outcome, type Settlement } from '../job/settlement.ts'
import type { Emitter } from '../std/emitter.ts'
import { assertNever } from '../std/never.ts'
import type { EnqueueAnswer, SettleAnswer } from '../stores/store.ts'
import { currentJob, type CurrentJob } from './current-job.ts'

/** An attempt as an instrument sees it. Its facts are built when they are read. */
export interface ObservedAttempt extends CurrentJob {
  readonly facts: AttemptFacts
  /** From when the job was due to when it was claimed, by the store's clock. */
  readonly waitMs: number
  end(durationMs: number): AttemptEnd
}

/** How an attempt ended, and what was written of it. */
export interface EndedAttempt {
  readonly attempt: ObservedAttempt
  readonly outcome: Outcome
  readonly request: { readonly settlement: Settlement; readonly runMs: number }
}

type Enqueued = readonly EnqueueAnswer[]

/** A listener around attempts and enqueues. A function that throws never changes what becomes of a job. */
export interface Instrument {
  attemptStarted?(attempt: ObservedAttempt): void
  /** Calls `run` once, within a context of its own (a span, say), and returns what it returns. */
  inAttempt?(attempt: ObservedAttempt, run: () => unknown): unknown
  /** The store has answered the settle of the attempt, or its lease is lost. */
  attemptEnded?(ended: EndedAttempt, answer: SettleAnswer): void
  /** Calls `send` once, within a context of its own, and returns what it returns. */
  aroundEnqueue?(jobs: readonly NewJob[], send: () => Promise<Enqueued>): Promise<Enqueued>
}

/** What a worker has done since it started. */
export interface AttemptCounters {
  /** Attempts that were written as completed or failed. */
  processed: number
  /** Those of them that failed, whether or not they are retried. */
  failed: number
  /** How long their handlers ran. */
  busyMs: number
  /** When the newest of them was written, by the monotonic clock; null before the first. */
  lastMs: number | null
}

export function newCounters(): AttemptCounters {
  return { processed: 0, failed: 0, busyMs: 0, lastMs: null }
}

export class Instrumentation {
  readonly #events: Emitter<Events>
  #instruments: readonly Instrument[] = []

  constructor(events: Emitter<Events>) {
    this.#events = events
  }

  /** Returns how to remove it again. */
  add(instrument: Instrument): () => void {
    this.#instruments = [...this.#instruments, instrument]
    return () => {
      this.#instruments = this.#instruments.filter((other) => other !== instrument)
    }
  }

  // ── around an attempt ──────────────────────────────────────────────────────

  attemptStarted(attempt: ObservedAttempt): void {
    if (this.#events.has('job.started'))
      this.#events.emit('job.started', { ...attempt.facts, waitMs: attempt.waitMs })
    if (this.#instruments.length > 0) this.#tell((one) => one.attemptStarted?.(attempt))
  }

  /** Runs the code of an attempt: whatever it calls, awaits or leaves behind knows its job. */
  inAttempt<Attempt extends ObservedAttempt, Given, Returned>(
    attempt: Attempt,
    run: (given: Given, attempt: Attempt) => Returned,
    given: Given,
  ): Returned {
    if (this.#instruments.length === 0) return currentJob.run(attempt, run, given, attempt)
    const innermost = (): unknown => run(given, attempt)
    const wrapped = this.#instruments.reduceRight<() => unknown>(
      (inner, one) => (one.inAttempt === undefined ? inner : () => one.inAttempt?.(attempt, inner)),
      innermost,
    )
    return currentJob.run(attempt, wrapped) as Returned
  }

  /** The store has answered the settle of an attempt. `counters` are those of its worker. */
  attemptEnded(ended: EndedAttempt, answer: SettleAnswer, counters?: AttemptCounters, nowMs = 0): void {
    if (counters !== undefined) count(counters, ended, answer, nowMs)
    const { attempt, request } = ended
    const name = eventOf(request.settlement, answer)
    if (this.#events.has(name)) {
      const end = attempt.end(request.runMs)
      if (name === 'job.lost' || name === 'commit.lost') this.#events.emit(name, end)
      else emitEnd(this.#events, end, ended)
    }
    if (this.#instruments.length > 0) this.#tell((one) => one.attemptEnded?.(ended, answer))
  }

  /** The lease of an attempt is gone before it had an outcome: nothing of it is written. */
  attemptLost(attempt: ObservedAttempt, runMs: number): void {
    const settlement = { type: 'release' } as const
    this.attemptEnded({ attempt, outcome: { type: 'interrupted' }, request: { settlement, runMs } }, 'lost')
  }

  // ── around an enqueue ──────────────────────────────────────────────────────

  /** What a job that is enqueued here and now inherits from the job whose handler enqueues it. */
  get inherited(): Inherited | undefined {
    return currentJob.getStore()?.inherited
  }

  /** Sends the jobs to the store and emits events for those that it accepted. */
  async aroundEnqueue(jobs: readonly NewJob[], send: () => Promise<Enqueued>): Promise<Enqueued> {
    const wrapped = this.#instruments.reduceRight<() => Promise<Enqueued>>(
      (inner, one) =>
        one.aroundEnqueue === undefined ? inner : () => one.aroundEnqueue?.(jobs, inner) ?? inner(),
      send,
    )
    const answers = await wrapped()
    if (this.#events.has('job.enqueued')) {
      jobs.forEach(({ name, queue }, index) => {
        const { id, outcome } = answers[index] as EnqueueAnswer
        this.#events.emit('job.enqueued', { id, job: name, queue, duplicate: outcome !== 'inserted' })
      })
    }
    return answers
  }

  #tell(call: (instrument: Instrument) => void): void {
    for (const one of this.#instruments) {
      try {
        call(one)
      } catch (error) {
        this.#events.emit('listener.failed', { event: 'instrumentation', error: toError(error) })
      }
    }
  }
}

function count(
  counters: AttemptCounters,
  { request }: EndedAttempt,
  answer: SettleAnswer,
  nowMs: number,
): void {
  const { settlement, runMs } = request
  const { type } = settlement
  const isFailure = type === 'retry' || type === 'dead'
  // Snoozed, released or cancelled attempts say nothing about how well the work goes.
  const isDone = type === 'completed' || (type === 'confirm' && answer === 'already')
  if (answer === 'lost' || !(isFailure || isDone)) return
  counters.processed++
  if (isFailure) counters.failed++
  counters.busyMs += runMs
  counters.lastMs = nowMs
}

const EVENT_OF = {
  completed: 'job.completed',
  retry: 'job.failed',
  dead: 'job.failed',
  snooze: 'job.snoozed',
  release: 'job.released',
  confirm: 'job.completed',
  cancelled: 'job.cancelled',
} as const

type EndName = (typeof EVENT_OF)[Settlement['type']] | 'job.lost' | 'commit.lost'

function eventOf(settlement: Settlement, answer: SettleAnswer): EndName {
  if (answer === 'lost') return 'job.lost'
  // The store found the job open, so it has lost the commit.
  if (settlement.type === 'confirm' && answer === 'written') return 'commit.lost'
  return EVENT_OF[settlement.type]
}

function emitEnd(events: Emitter<Events>, end: AttemptEnd, { outcome, request }: EndedAttempt): void {
  const { settlement } = request
  switch (settlement.type) {
    case 'completed':
    case 'confirm':
      return events.emit('job.completed', end)
    case 'retry':
    case 'dead': {
      const { kind, fingerprint, message } = settlement.error
      const retryInMs = settlement.type === 'retry' ? settlement.delayMs : null
      const error = errorOf(outcome) ?? new Error(message)
      const final = retryInMs === null
      return events.emit('job.failed', { ...end, error, kind, fingerprint, final, retryInMs })
    }
    case 'snooze':
      return events.emit('job.snoozed', { ...end, delayMs: settlement.delayMs, error: errorOf(outcome) })
    case 'release':
      return events.emit('job.released', end)
    case 'cancelled':
      return events.emit('job.cancelled', { ...end, reason: settlement.reason })
    default:
      return assertNever(settlement)
  }
}

function errorOf(outcome: Outcome): Error | null {
  return outcome.type === 'failed' ? toError(outcome.thrown) : null
}
