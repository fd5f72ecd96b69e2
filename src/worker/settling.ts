/** Settlements on their way to the store: built from outcomes, and held until the store has answered them. */
import type { Core } from '../core/core.ts'
import { HoldfastError } from '../errors.ts'
import type { JobDefinition } from '../job/definition.ts'
import { triedUntil } from '../job/expiry.ts'
import { attemptError, recordedError } from '../job/failure.ts'
import type { Token } from '../job/ids.ts'
import type { AttemptRecord, ClaimedJob } from '../job/record.ts'
import { resolveRetry, type ResolvedRetry } from '../job/retry.ts'
import { settlementFor, type Outcome, type Settlement } from '../job/settlement.ts'
import { assertNever } from '../std/never.ts'
import { MAX_BATCH, type SettleRequest } from '../stores/store.ts'
import type { Attempt } from './attempt.ts'
import { tellWorkerError } from './worker-error.ts'

export interface PendingSettle {
  readonly attempt: Attempt
  readonly outcome: Outcome
  readonly request: SettleRequest
  /** It replaces a settlement that the store refused. */
  readonly refused?: boolean
}

/**
 * Settlements that wait for a call to the store. Two calls under way never settle the same lease, because a store may have
 * to lock it: the second call would only wait for the first. What ends meanwhile is held back until that answer.
 */
export class PendingSettlements {
  #waiting: PendingSettle[] = []
  /** Leases that a call under way settles, each with the settlements that are held back for it. */
  readonly #held = new Map<Token, PendingSettle[]>()
  /** Settlements that no call takes along before their time. */
  #aside: readonly { readonly settles: readonly PendingSettle[]; readonly untilMs: number }[] = []

  /** How many can be sent now. */
  get size(): number {
    return this.#waiting.length
  }

  /** Whether every settlement has its answer, but for those that a call under way carries. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#aside.length === 0
  }

  add(pending: PendingSettle): void {
    const list = this.#held.size === 0 ? undefined : this.#held.get(pending.request.token)
    if (list === undefined) this.#waiting.push(pending)
    else list.push(pending)
  }

  /** For one call: at most as many as a store takes. */
  take(): readonly PendingSettle[] {
    const taken = this.#waiting.length <= MAX_BATCH ? this.#waiting : this.#waiting.slice(0, MAX_BATCH)
    const rest = this.#waiting.slice(taken.length)
    this.#waiting = []
    let last: Token | undefined
    for (const { request } of taken) {
      if (request.token !== last) this.#held.set(request.token, [])
      last = request.token
    }
    // The rest may be of the same leases.
    for (const pending of rest) this.add(pending)
    return taken
  }

  /** The call has an answer, whatever it is: the next call can settle these leases. */
  answered(taken: readonly PendingSettle[]): void {
    let last: Token | undefined
    const held: PendingSettle[] = []
    for (const { request } of taken) {
      if (request.token === last) continue
      last = request.token
      held.push(...(this.#held.get(last) ?? []))
      this.#held.delete(last)
    }
    if (held.length > 0) this.#waiting.unshift(...held)
  }

  /** To be sent again, but not before that time: the store refuses them in every form, and with them the whole call. */
  setAside(settles: readonly PendingSettle[], untilMs: number): void {
    if (settles.length > 0) this.#aside = [...this.#aside, { settles, untilMs }]
  }

  /** Lets the next call take along what was set aside until now. */
  takeUp(nowMs: number): void {
    if (this.#aside.length === 0) return
    const due = this.#aside.filter(({ untilMs }) => untilMs <= nowMs)
    this.#aside = this.#aside.filter(({ untilMs }) => untilMs > nowMs)
    for (const { settles } of due) for (const pending of settles) this.add(pending)
  }

  /** To be sent again, by the next call. */
  putBack(left: readonly PendingSettle[]): void {
    if (left.length > 0) this.#waiting.unshift(...left)
  }
}

/**
 * A job that this worker does not know may be known after the deploy that is under way: its retries are spread over
 * minutes, not over the seconds that a handler's own policy would give.
 */
const UNKNOWN_JOB_RETRY = { backoff: 'exponential', delay: '30s', factor: 2, maxDelay: '10m' } as const

export function retryOfUnknownJobs(core: Core): ResolvedRetry {
  return resolveRetry(UNKNOWN_JOB_RETRY, core.settings.retry)
}

/** Where retries are looked up. */
export interface Policies {
  readonly definitionOf: (name: string) => JobDefinition | undefined
  /** Policy of jobs that have no definition here. @default that of holdfast(), with the overrides of the enqueue */
  readonly retryOfUnknown?: ResolvedRetry
}

/** What is to be written of an attempt that ended in this way. */
export function settle(core: Core, attempt: Attempt, outcome: Outcome, policies: Policies): PendingSettle {
  const { job, token, position } = attempt
  const runMs = attempt.runMs(core.clock.monotonicMs())
  const settlement = settlementOf(core, attempt, outcome, runMs, policies)
  const request: SettleRequest = {
    token,
    position,
    settlement,
    runMs,
    forget: settlement.type === 'dead' ? !core.queues.keepsDead(job.queue) : core.forgets,
    // A completed job has its last attempt in its own record.
    record: settlement.type === 'completed' ? null : recordOf(attempt, settlement, runMs),
    keepRecords: core.settings.keepAttempts,
  }
  // Spread only if it is needed: this is built for every job that ends.
  return { attempt, outcome, request: KEEPS_PLACE[settlement.type] ? { ...request, job } : request }
}

/** Whether the job may be ready again at its old place, which the store is told then. */
const KEEPS_PLACE: Readonly<Record<Settlement['type'], boolean>> = {
  completed: false,
  retry: false,
  dead: false,
  snooze: false,
  release: true,
  confirm: true,
  cancelled: false,
}

/** Never throws: a job whose outcome gets lost would stay open as long as this process lives. */
function settlementOf(
  core: Core,
  attempt: Attempt,
  outcome: Outcome,
  runMs: number,
  policies: Policies,
): Settlement {
  const { settings, random } = core
  const { job, worker } = attempt
  try {
    // Most attempts succeed, and no policy has a say in that.
    const policy = outcome.type === 'failed' ? policyOf(core, attempt, policies) : settings.retry
    return inTime(attempt, runMs, settlementFor(job, outcome, policy, random))
  } catch (error) {
    tellWorkerError(core, worker, `settle job ${job.id} by its policy`, error)
    // Nobody can tell whether and when to try again. A person can.
    return outcome.type === 'failed'
      ? { type: 'dead', error: attemptError(outcome.thrown, job.attempt, 'permanent') }
      : settlementFor(job, outcome, settings.retry, random)
  }
}

/** Make a failure final if its next attempt would come too late. A handler that snoozes asks for a later time itself. */
function inTime({ job, startedAt }: Attempt, runMs: number, settlement: Settlement): Settlement {
  if (job.envelope.expires === undefined) return settlement
  if (!('delayMs' in settlement) || settlement.error === null) return settlement
  const dueAt = startedAt + runMs + settlement.delayMs
  return dueAt < triedUntil(job) ? settlement : { type: 'dead', error: settlement.error }
}

/** The record of the attempt; null if it was released without a fault. */
export function recordOf(attempt: Attempt, settlement: Settlement, runMs: number): AttemptRecord | null {
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

function policyOf(core: Core, attempt: Attempt, { definitionOf, retryOfUnknown }: Policies): ResolvedRetry {
  const own = definitionOf(attempt.job.name)?.retry
  if (own === undefined && retryOfUnknown !== undefined) return retryOfUnknown
  return withOverrides(core, own ?? core.settings.retry, attempt)
}

/** If a newer version wrote overrides that this one cannot read, settle the job without them. */
function withOverrides(core: Core, base: ResolvedRetry, { job, worker }: Attempt): ResolvedRetry {
  const { retry } = job.envelope
  if (retry === null) return base
  try {
    return resolveRetry(retry, base)
  } catch (error) {
    const isNewer = error instanceof HoldfastError && error.code === 'HF_BAD_OPTION'
    if (!isNewer) tellWorkerError(core, worker, `read the retry policy of job ${job.id}`, error)
    return base
  }
}

/** How long an attempt at this job may run. There is always a limit. */
export function timeoutOf(
  core: Core,
  { envelope }: ClaimedJob,
  definition: JobDefinition | undefined,
): number {
  return envelope.timeoutMs ?? definition?.timeoutMs ?? core.settings.jobTimeoutMs
}
