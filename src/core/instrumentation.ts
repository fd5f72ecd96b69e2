/**
 * The seam for instrumentation: one place around an attempt (start, context, end), one where a job is made and one around
 * an enqueue. The current-job context, the events that become log lines and the counters of a worker are fed from here;
 * metrics and traces add an `Instrument`, which can watch everything and change nothing. Without a listener nothing is
 * built.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { AttemptEnd, AttemptFacts, Events } from '../job/events.ts'
import { withMetadata, type Inherited } from '../job/new-job.ts'
import type { Envelope, NewJob } from '../job/record.ts'
import type { Outcome, Settlement } from '../job/settlement.ts'
import type { Emitter } from '../std/emitter.ts'
import { assertNever } from '../std/never.ts'
import { toError } from '../std/text.ts'
import { isThenable } from '../std/thenable.ts'
import type { EnqueueAnswer, SettleAnswer } from '../stores/store.ts'
import { currentJob, type CurrentJob } from './current-job.ts'
import { hear, inside, type Layer } from './inside.ts'

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

/** What is about to be enqueued or published. */
export interface Made {
  readonly kind: 'job' | 'event'
  readonly name: string
}

/**
 * A listener around attempts and enqueues. It changes nothing: what its functions return is ignored, but for `metadata`,
 * and what they throw is told as `listener.failed`.
 */
export interface Instrument {
  /**
   * A job or an event is made by the code that runs now. What this returns is added to its metadata, which the handler
   * sees and hands on: a trace context, say. It has to be returned at once, not as a promise.
   */
  metadata?(made: Made): Readonly<Record<string, string>> | undefined
  attemptStarted?(attempt: ObservedAttempt): unknown
  /** Calls `run` before it returns, within a context of its own: a span, say. */
  inAttempt?(attempt: ObservedAttempt, run: () => void): unknown
  /** The same around one call of a batch handler, which runs for all these attempts and in the context of none. */
  inBatch?(attempts: readonly ObservedAttempt[], run: () => void): unknown
  /** The handler has returned or thrown; null if the lease of its attempt was lost. Messages by hand have none. */
  handlerEnded?(attempt: ObservedAttempt, outcome: Outcome | null): unknown
  /** The store has answered the settle of the attempt, or its lease is lost. */
  attemptEnded?(ended: EndedAttempt, answer: SettleAnswer): unknown
  /**
   * Calls `send` before it returns, within a context of its own. Concurrent enqueues are sent together, so that is not
   * the context of the code that enqueued. `send` resolves to the answers: none for a tick that was not fired.
   */
  aroundEnqueue?(jobs: readonly NewJob[], send: () => Promise<Enqueued>): unknown
}

/** One call of a batch handler. */
export interface ObservedBatch extends CurrentJob {
  readonly attempts: readonly ObservedAttempt[]
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
  /** Runs a function where no instrument has entered a context. */
  readonly #outside = AsyncLocalStorage.snapshot()

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
    const layers = this.#layers((one) => one.inAttempt && ((enter) => one.inAttempt?.(attempt, enter)))
    return currentJob.run(attempt, inside, layers, () => run(given, attempt), this.#failed)
  }

  /** Calls a batch handler. */
  inBatch<Given, Returned>(batch: ObservedBatch, run: (given: Given) => Returned, given: Given): Returned {
    if (this.#instruments.length === 0) return currentJob.run(batch, run, given)
    const { attempts } = batch
    const layers = this.#layers((one) => one.inBatch && ((enter) => one.inBatch?.(attempts, enter)))
    return currentJob.run(batch, inside, layers, () => run(given), this.#failed)
  }

  /** Runs `work` as if no job's code had called it, in no context of an instrument's. */
  outside<T>(work: () => T): T {
    if (this.#instruments.length === 0) return currentJob.run(undefined, work)
    return this.#outside(() => currentJob.run(undefined, work))
  }

  handlerEnded(attempt: ObservedAttempt, outcome: Outcome | null): void {
    if (this.#instruments.length > 0) this.#tell((one) => one.handlerEnded?.(attempt, outcome))
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

  /** The envelope of a job or an event that is made here and now, with what instruments add to it. */
  stamp(envelope: Envelope, kind: Made['kind'], name: string): Envelope {
    return this.#instruments.length === 0 ? envelope : this.#stamped(envelope, { kind, name })
  }

  #stamped(envelope: Envelope, made: Made): Envelope {
    let stamped = envelope
    for (const one of this.#instruments) {
      hear(() => {
        const added = one.metadata?.(made)
        if (added !== undefined && !isThenable(added)) stamped = withMetadata(stamped, added)
        return added
      }, this.#failed)
    }
    return stamped
  }

  /** Sends the jobs to the store and tells of those that it took. */
  aroundEnqueue(jobs: readonly NewJob[], send: () => Promise<Enqueued>): Promise<Enqueued> {
    const sent = this.aroundEnqueueIn(jobs, send)
    return this.#events.has('job.enqueued') ? this.#tellEnqueued(jobs, sent) : sent
  }

  /** The same in a transaction: whether there are such jobs is for its owner to say, by the commit. */
  aroundEnqueueIn(jobs: readonly NewJob[], send: () => Promise<Enqueued>): Promise<Enqueued> {
    return this.#instruments.length === 0 ? send() : this.#around(jobs, send, (sent) => sent)
  }

  aroundEnqueueSync(job: NewJob, send: () => EnqueueAnswer): EnqueueAnswer {
    return this.#instruments.length === 0 ? send() : this.#around([job], send, async (answer) => [answer])
  }

  /** Fires a tick of a schedule. */
  aroundFire<Fired extends string>(job: NewJob, send: () => Promise<Fired>): Promise<Fired> {
    if (this.#instruments.length === 0) return send()
    const inserted = [{ id: job.id, outcome: 'inserted' }] as const
    return this.#around([job], send, async (sent) => ((await sent) === 'fired' ? inserted : []))
  }

  /** `answersOf`: what instruments see of what was sent. */
  #around<T>(jobs: readonly NewJob[], send: () => T, answersOf: (sent: T) => Promise<Enqueued>): T {
    let answers: Promise<Enqueued> | undefined
    let lost: unknown
    const work = (): T => {
      try {
        const sent = send()
        answers = answersOf(sent)
        return sent
      } catch (error) {
        answers = Promise.reject(error)
        throw error
      } finally {
        answers?.catch((error: unknown) => void (lost = error))
      }
    }
    const layers = this.#layers(
      (one) =>
        one.aroundEnqueue &&
        ((enter) =>
          one.aroundEnqueue?.(jobs, () => {
            enter()
            return answers as Promise<Enqueued>
          })),
    )
    // An instrument that awaits what it sent fails with it: that is no mistake of its own.
    return inside(layers, work, (error) => error !== lost && this.#failed(error))
  }

  async #tellEnqueued(jobs: readonly NewJob[], sent: Promise<Enqueued>): Promise<Enqueued> {
    const answers = await sent
    jobs.forEach(({ name, queue }, index) => {
      const { id, outcome } = answers[index] as EnqueueAnswer
      this.#events.emit('job.enqueued', { id, job: name, queue, duplicate: outcome !== 'inserted' })
    })
    return answers
  }

  #layers(layerOf: (instrument: Instrument) => Layer | undefined): readonly Layer[] {
    return this.#instruments.flatMap((one) => layerOf(one) ?? [])
  }

  #tell(call: (instrument: Instrument) => unknown): void {
    for (const one of this.#instruments) hear(() => call(one), this.#failed)
  }

  readonly #failed = (error: unknown): void => {
    this.#events.emit('listener.failed', { event: 'instrumentation', error: toError(error) })
  }
}

function count(
  counters: AttemptCounters,
  { request }: EndedAttempt,
  answer: SettleAnswer,
  nowMs: number,
): void {
  const { settlement, runMs } = request
  // A commit that was lost is no success.
  if (answer === 'lost' || (settlement.type === 'confirm' && answer === 'written')) return
  const counted = COUNTED_AS[settlement.type]
  if (counted === null) return
  counters.processed++
  if (counted === 'failed') counters.failed++
  counters.busyMs += runMs
  counters.lastMs = nowMs
}

/** Snoozed, released or cancelled attempts say nothing about how well the work goes. */
const COUNTED_AS: Readonly<Record<Settlement['type'], 'done' | 'failed' | null>> = {
  completed: 'done',
  retry: 'failed',
  dead: 'failed',
  snooze: null,
  release: null,
  confirm: 'done',
  cancelled: null,
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
