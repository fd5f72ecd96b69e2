/**
 * Decides what happens to a job after an attempt: a pure function of the job, its outcome and its policy. Stores only
 * write the decision, so a rule is tested once and holds on every store.
 */
import { DependencyDown, RetryIn } from '../errors.ts'
import { assertNever } from '../std/never.ts'
import type { Random } from '../std/random.ts'
import { toError } from '../std/text.ts'
import { readDuration } from './duration.ts'
import { attemptError, type AttemptError, type FailureKind } from './failure.ts'
import { retryDelayMs, spread, type ResolvedRetry } from './retry.ts'

/** How an attempt ended. An attempt whose lease was lost has no outcome: nothing may be written for it. */
export type Outcome =
  | { readonly type: 'succeeded'; readonly result: string | null; readonly resultDropped: boolean }
  /** The handler's `commit` completed the job in the store. */
  | { readonly type: 'committed'; readonly result: string | null; readonly resultDropped: boolean }
  | { readonly type: 'failed'; readonly thrown: unknown; readonly kind: FailureKind }
  | { readonly type: 'snoozed'; readonly delayMs: number }
  | { readonly type: 'interrupted' }
  | { readonly type: 'cancelled'; readonly reason: string | null }

/** What the store writes. Delays, not times: only the store's clock decides when. */
export type Settlement =
  | { readonly type: 'completed'; readonly result: string | null; readonly resultDropped: boolean }
  | { readonly type: 'retry'; readonly delayMs: number; readonly error: AttemptError }
  | { readonly type: 'dead'; readonly error: AttemptError }
  /** Scheduled again; no attempt is used. */
  | { readonly type: 'snooze'; readonly delayMs: number; readonly error: AttemptError | null }
  /** Ready again with its old rank; no attempt is used. */
  | { readonly type: 'release' }
  /**
   * Confirms a commit that completed the job. Normally the position is settled, so nothing is written. If it is still
   * open, the store lost the commit (a failover, a crash with `synchronous_commit = off`) and its effect with it: the
   * job is ready again with its old rank, and no attempt is used.
   */
  | { readonly type: 'confirm' }
  | { readonly type: 'cancelled'; readonly reason: string | null }

const COMES_BACK: Readonly<Record<Settlement['type'], boolean>> = {
  completed: false,
  retry: true,
  dead: false,
  snooze: true,
  release: true,
  confirm: true,
  cancelled: false,
}

/** Every kind of settlement. */
export const SETTLEMENT_TYPES: readonly string[] = Object.keys(COMES_BACK)

/** Whether the job would wait for another attempt. If its cancel was requested, it is cancelled instead. */
export function comesBack({ type }: Settlement): boolean {
  return COMES_BACK[type]
}

interface Attempted {
  readonly attempt: number
  readonly maxAttempts: number
}

const PARKED_MS = 30_000
const EXHAUSTED_MIN_MS = 15_000

export function settlementFor(
  job: Attempted,
  outcome: Outcome,
  policy: ResolvedRetry,
  random: Random,
): Settlement {
  switch (outcome.type) {
    case 'succeeded':
      return { type: 'completed', result: outcome.result, resultDropped: outcome.resultDropped }
    case 'committed':
      // Never `completed`: that would complete a job whose effect is lost.
      return { type: 'confirm' }
    case 'snoozed':
      return { type: 'snooze', delayMs: outcome.delayMs, error: null }
    case 'interrupted':
      // Not the job's fault, so it uses no attempt.
      return { type: 'release' }
    case 'cancelled':
      return { type: 'cancelled', reason: outcome.reason }
    case 'failed':
      return failureSettlement(job, outcome.thrown, outcome.kind, policy, random)
    default:
      return assertNever(outcome)
  }
}

function failureSettlement(
  job: Attempted,
  thrown: unknown,
  kind: FailureKind,
  policy: ResolvedRetry,
  random: Random,
): Settlement {
  if (kind === 'dependency_down') {
    // Rounded up: a delay means "not before".
    const delayMs = Math.round((ownDelayMs(thrown) ?? PARKED_MS) * (1 + policy.jitter * random.float()))
    return { type: 'snooze', delayMs, error: attemptError(thrown, job.attempt, kind) }
  }
  const refusal = kind === 'permanent' ? { thrown } : refusedBy(policy, thrown, job.attempt)
  if (refusal !== undefined)
    return { type: 'dead', error: attemptError(refusal.thrown, job.attempt, 'permanent') }
  const error = attemptError(thrown, job.attempt, kind)
  if (job.attempt >= job.maxAttempts) return { type: 'dead', error }
  return { type: 'retry', delayMs: delayAfter(thrown, kind, job.attempt, policy, random), error }
}

/**
 * The error if the job's `when` refuses a retry. If `when` itself throws, that is a bug, and retrying cannot help. In
 * an object, because undefined can be thrown as well.
 */
function refusedBy(
  policy: ResolvedRetry,
  thrown: unknown,
  attempt: number,
): { readonly thrown: unknown } | undefined {
  if (policy.when === undefined) return undefined
  try {
    return policy.when(toError(thrown), attempt) ? undefined : { thrown }
  } catch (error) {
    return { thrown: error }
  }
}

function delayAfter(
  thrown: unknown,
  kind: FailureKind,
  attempt: number,
  policy: ResolvedRetry,
  random: Random,
): number {
  const own = ownDelayMs(thrown)
  if (own !== undefined) return own
  let delayMs: number
  try {
    delayMs = retryDelayMs(policy, attempt, thrown, random)
  } catch {
    // A backoff function that throws or answers nonsense must not keep the failure from being written.
    delayMs = spread(policy.maxDelayMs, policy.jitter, random)
  }
  return kind === 'resources_exhausted'
    ? Math.max(delayMs, spread(EXHAUSTED_MIN_MS, policy.jitter, random))
    : delayMs
}

function ownDelayMs(thrown: unknown): number | undefined {
  try {
    const asked =
      thrown instanceof RetryIn
        ? thrown.delay
        : thrown instanceof DependencyDown
          ? thrown.retryAfter
          : undefined
    return asked === undefined ? undefined : readDuration(asked, 'delay', { orZero: true })
  } catch {
    // Not a duration, or a proxy that throws from instanceof.
    return undefined
  }
}
