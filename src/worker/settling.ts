/** From an outcome to a settlement on its way to the store, and from the store's answer to an event. */
import type { Core } from '../core/core.ts'
import { HoldfastError } from '../errors.ts'
import type { JobDefinition } from '../job/definition.ts'
import type { AttemptEnd } from '../job/events.ts'
import { triedUntil } from '../job/expiry.ts'
import { attemptError, recordedError } from '../job/failure.ts'
import type { Token } from '../job/ids.ts'
import type { AttemptRecord, ClaimedJob } from '../job/record.ts'
import { resolveRetry, type ResolvedRetry } from '../job/retry.ts'
import { settlementFor, toError, type Outcome, type Settlement } from '../job/settlement.ts'
import { assertNever } from '../std/never.ts'
import { MAX_BATCH, type SettleAnswer, type SettleRequest } from '../stores/store.ts'
import type { Attempt } from './attempt.ts'

export interface PendingSettle {
  readonly attempt: Attempt
  readonly outcome: Outcome
  readonly request: SettleRequest
  /** It stands for one that the store refused. */
  readonly refused?: boolean
}

/**
 * Settlements on their way to the store: taken for a call, and put back where the call failed. Two calls under way never
 * settle the same lease, because a store may have to lock it: the second would only wait for the first. What ends
 * meanwhile is held back and goes with the next call after that answer.
 */
export class Outbox {
  #waiting: PendingSettle[] = []
  /** Leases that a call under way settles, each with what is held back for it. */
  readonly #held = new Map<Token, PendingSettle[]>()
  #underWay = 0

  /** How many can be sent now. */
  get size(): number {
    return this.#waiting.length
  }

  /** Nothing waits, and no call is under way whose answer may bring more. */
  get isDone(): boolean {
    return this.#waiting.length === 0 && this.#underWay === 0
  }

  add(pending: PendingSettle): void {
    const queue = this.#held.get(pending.request.token) ?? this.#waiting
    queue.push(pending)
  }

  /** For a call, which is under way from now on. */
  take(): readonly PendingSettle[] {
    this.#underWay++
    const taken = this.#waiting.splice(0, MAX_BATCH)
    for (const { request } of taken) this.#held.set(request.token, [])
    // Beyond one batch there may be more of the same leases.
    const rest = this.#waiting
    this.#waiting = []
    for (const pending of rest) this.add(pending)
    return taken
  }

  /** Whatever the answer was: their leases can be settled by the next call. */
  answered(taken: readonly PendingSettle[]): void {
    const tokens = new Set(taken.map(({ request }) => request.token))
    const held = [...tokens].flatMap((token) => this.#held.get(token) ?? [])
    for (const token of tokens) this.#held.delete(token)
    this.#waiting.unshift(...held)
  }

  putBack(taken: readonly PendingSettle[]): void {
    this.answered(taken)
    this.#waiting.unshift(...taken)
  }

  /** The call has ended, well or badly. */
  landed(): void {
    this.#underWay--
  }
}

/**
 * A job that this worker does not know may be known after the deploy that is under way: its retries are spread over
 * minutes, not over the seconds that a handler's own policy would give.
 */
const UNKNOWN_JOB_RETRY = { backoff: 'exponential', delay: '30s', factor: 2, maxDelay: '10m' } as const

export function settle(core: Core, attempt: Attempt, outcome: Outcome, policy: ResolvedRetry): PendingSettle {
  const { job, token, position } = attempt
  const runMs = attempt.runMs(core.clock.monotonicMs())
  const settlement = inTime(attempt, runMs, settlementFor(job, outcome, policy, core.random))
  const request: SettleRequest = {
    token,
    position,
    settlement,
    runMs,
    forget: settlement.type === 'dead' ? !core.queues.keepsDead(job.queue) : core.forgets,
    // Of a completed job, its own record tells.
    record: settlement.type === 'completed' ? null : recordOf(attempt, settlement, runMs),
    keepRecords: core.settings.keepAttempts,
  }
  // Spread only where it is needed: this is built for every job that ends.
  const comesBack = settlement.type === 'release' || settlement.type === 'confirm'
  return { attempt, outcome, request: comesBack ? { ...request, job } : request }
}

/**
 * Instead of a settle that the store refused because of its data: a dead letter that says so, in characters that any store
 * takes. The handler may have done its work, so running it again would be wrong as well as useless.
 */
export function settleAsRefused(core: Core, pending: PendingSettle, cause: Error): PendingSettle {
  const { attempt, request } = pending
  const runMs = Math.min(request.runMs, LONGEST_RUN_MS)
  // Its job is completed: only the number can have been refused.
  if (request.settlement.type === 'confirm')
    return { ...pending, refused: true, request: { ...request, runMs } }
  const what = request.settlement.type === 'completed' ? 'the result of this job' : 'how this attempt ended'
  const why = cause.message.replace(/[^\x20-\x7e]/g, '?')
  const thrown = new HoldfastError('HF_STORE_REFUSED', `The store cannot keep ${what}. ${why}`, { cause })
  const error = attemptError(thrown, attempt.job.attempt, 'permanent')
  const settlement: Settlement = { type: 'dead', error }
  return {
    attempt,
    refused: true,
    outcome: { type: 'failed', thrown, kind: 'permanent' },
    request: {
      ...request,
      settlement,
      runMs,
      forget: !core.queues.keepsDead(attempt.job.queue),
      record: recordOf(attempt, settlement, runMs),
    },
  }
}

/** Should the refused value be this number. */
const LONGEST_RUN_MS = 2 ** 31 - 1

/** A failure whose next attempt would come too late is final. What snoozes of its own accord asks for a later time. */
function inTime({ job, startedAt }: Attempt, runMs: number, settlement: Settlement): Settlement {
  if (job.envelope.expires === undefined) return settlement
  if ((settlement.type !== 'retry' && settlement.type !== 'snooze') || settlement.error === null)
    return settlement
  const dueAt = startedAt + runMs + settlement.delayMs
  return dueAt < triedUntil(job) ? settlement : { type: 'dead', error: settlement.error }
}

/** What is remembered of the attempt; nothing of one that was handed back without a fault. */
function recordOf(attempt: Attempt, settlement: Settlement, runMs: number): AttemptRecord | null {
  const facts = {
    attempt: attempt.job.attempt,
    worker: attempt.worker,
    startedAt: Math.round(attempt.startedAt),
    durationMs: Math.round(runMs),
  }
  switch (settlement.type) {
    case 'retry':
    case 'dead':
      return { ...facts, outcome: 'failed', error: recordedError(settlement.error) }
    case 'snooze':
      return settlement.error === null
        ? null
        : { ...facts, outcome: 'parked', error: recordedError(settlement.error) }
    case 'cancelled':
      return attempt.startedMs === undefined ? null : { ...facts, outcome: 'cancelled', error: null }
    case 'completed':
    case 'release':
    case 'confirm':
      return null
    default:
      return assertNever(settlement)
  }
}

/** The policy of the definition with what the enqueue overrode, or that of jobs that this worker does not know. */
export function policyOf(
  core: Core,
  attempt: Attempt,
  jobs: ReadonlyMap<string, JobDefinition>,
): ResolvedRetry {
  const definition = jobs.get(attempt.job.name)
  return definition === undefined
    ? resolveRetry(UNKNOWN_JOB_RETRY, core.settings.retry)
    : withOverrides(definition.retry, attempt)
}

/** Overrides that this version cannot read, because a newer one wrote them, must not keep a job from being settled. */
export function withOverrides(base: ResolvedRetry, { job: { envelope } }: Attempt): ResolvedRetry {
  if (envelope.retry === null) return base
  try {
    return resolveRetry(envelope.retry, base)
  } catch {
    return base
  }
}

/** How long an attempt at this job may run; there is always an end. */
export function timeoutOf(
  core: Core,
  { envelope }: ClaimedJob,
  definition: JobDefinition | undefined,
): number {
  return envelope.timeoutMs ?? definition?.timeoutMs ?? core.settings.jobTimeoutMs
}

/** Tells what was written, or that nothing was because the lease is gone. */
export function tellSettled(
  core: Core,
  { attempt, outcome, request }: PendingSettle,
  answer: SettleAnswer,
): void {
  const { settlement, runMs } = request
  const name = eventOf(settlement, answer)
  if (!core.events.has(name)) return
  const end = attempt.end(runMs)
  if (name === 'job.lost' || name === 'commit.lost') core.events.emit(name, end)
  else tellEnd(core, end, settlement, outcome)
}

function eventOf(settlement: Settlement, answer: SettleAnswer): EndName {
  if (answer === 'lost') return 'job.lost'
  // There was something to write, so the commit was not there.
  if (settlement.type === 'confirm' && answer === 'written') return 'commit.lost'
  return EVENT_OF[settlement.type]
}

type EndName = (typeof EVENT_OF)[Settlement['type']] | 'job.lost' | 'commit.lost'

const EVENT_OF = {
  completed: 'job.completed',
  retry: 'job.failed',
  dead: 'job.failed',
  snooze: 'job.snoozed',
  release: 'job.released',
  confirm: 'job.completed',
  cancelled: 'job.cancelled',
} as const

function tellEnd({ events }: Core, end: AttemptEnd, settlement: Settlement, outcome: Outcome): void {
  const thrown = outcome.type === 'failed' ? toError(outcome.thrown) : null
  switch (settlement.type) {
    case 'completed':
    case 'confirm':
      return events.emit('job.completed', end)
    case 'retry':
    case 'dead': {
      const { kind, fingerprint } = settlement.error
      const retryInMs = settlement.type === 'retry' ? settlement.delayMs : null
      const error = thrown ?? new Error(settlement.error.message)
      return events.emit('job.failed', {
        ...end,
        error,
        kind,
        fingerprint,
        final: retryInMs === null,
        retryInMs,
      })
    }
    case 'snooze':
      return events.emit('job.snoozed', { ...end, delayMs: settlement.delayMs, error: thrown })
    case 'release':
      return events.emit('job.released', end)
    case 'cancelled':
      return events.emit('job.cancelled', { ...end, reason: settlement.reason })
    default:
      return assertNever(settlement)
  }
}
