/** When to try again: exponential, linear, fixed or a function, capped and jittered. */
import { HoldfastError } from '../errors.ts'
import type { Duration } from '../std/duration.ts'
import type { Random } from '../std/random.ts'
import { readDuration } from './duration.ts'
import { toError } from './failure.ts'
import { readWhole } from './numbers.ts'
import { show } from './show.ts'

export type BackoffShape = 'exponential' | 'linear' | 'fixed'
export type Backoff = BackoffShape | ((attempt: number, error: Error) => Duration)

/** The part of a policy that can be stored with a job. */
export interface RetryOptions {
  /** Maximum number of attempts, including the first. @default 4 (JOB_MAX_RETRIES plus one) */
  readonly attempts?: number
  /** Number of lost workers that a job survives before it is taken for their cause. @default 3 */
  readonly crashes?: number
  /** @default 'exponential' */
  readonly backoff?: BackoffShape
  /** The first delay. @default '1s' */
  readonly delay?: Duration
  /** Factor by which an exponential delay grows. @default 2 */
  readonly factor?: number
  /** @default '5m' */
  readonly maxDelay?: Duration
  /** Maximum share of a delay that is randomly removed: 0.5 gives 50–100 %; true is 0.5, false is 0. @default 0.5 */
  readonly jitter?: boolean | number
}

export interface RetryPolicy extends Omit<RetryOptions, 'backoff'> {
  /** A shape, or a function of the attempt that failed (1 is the first) and its error. @default 'exponential' */
  readonly backoff?: Backoff
  /** Return false for a permanent error: the job becomes a dead letter at once. */
  readonly when?: (error: Error, attempt: number) => boolean
}

/** A policy with all defaults filled in. */
export interface ResolvedRetry {
  readonly attempts: number
  readonly crashes: number
  readonly backoff: Backoff
  readonly delayMs: number
  readonly factor: number
  readonly maxDelayMs: number
  readonly jitter: number
  readonly when: ((error: Error, attempt: number) => boolean) | undefined
}

export const DEFAULT_RETRY: ResolvedRetry = Object.freeze({
  attempts: 4,
  crashes: 3,
  backoff: 'exponential',
  delayMs: 1_000,
  factor: 2,
  maxDelayMs: 300_000,
  jitter: 0.5,
  when: undefined,
})

const SHAPES: readonly unknown[] = ['exponential', 'linear', 'fixed'] satisfies BackoffShape[]
const FIELDS: ReadonlySet<string> = new Set([
  'attempts',
  'crashes',
  'backoff',
  'delay',
  'factor',
  'maxDelay',
  'jitter',
  'when',
])

/** Fills in the missing fields of `policy` from `base`; rejects invalid ones. */
export function resolveRetry(policy: RetryPolicy | undefined, base: ResolvedRetry): ResolvedRetry {
  if (policy === undefined) return base
  if (typeof policy !== 'object' || policy === null) throw bad('retry', policy, 'an object')
  for (const field of Object.keys(policy)) {
    if (!FIELDS.has(field)) throw refused(`retry has no option ${show(field)}.`, [...FIELDS].join(', '))
  }
  const { backoff = base.backoff, factor = base.factor } = policy
  if (typeof backoff !== 'function' && !SHAPES.includes(backoff)) {
    throw bad('retry.backoff', backoff, `${SHAPES.join(', ')} or a function`)
  }
  if (!(typeof factor === 'number' && factor >= 1 && Number.isFinite(factor))) {
    throw bad('retry.factor', factor, 'a number from 1 on')
  }
  if (policy.when !== undefined && typeof policy.when !== 'function')
    throw bad('retry.when', policy.when, 'a function')
  return Object.freeze({
    attempts:
      policy.attempts === undefined ? base.attempts : readWhole(policy.attempts, 'retry.attempts', 1, 32_767),
    crashes:
      policy.crashes === undefined ? base.crashes : readWhole(policy.crashes, 'retry.crashes', 0, 32_767),
    backoff,
    factor,
    delayMs: policy.delay === undefined ? base.delayMs : readDuration(policy.delay, 'retry.delay'),
    maxDelayMs:
      policy.maxDelay === undefined ? base.maxDelayMs : readDuration(policy.maxDelay, 'retry.maxDelay'),
    jitter: policy.jitter === undefined ? base.jitter : readJitter(policy.jitter),
    when: policy.when ?? base.when,
  })
}

function readJitter(value: unknown): number {
  if (typeof value === 'boolean') return value ? DEFAULT_RETRY.jitter : 0
  if (typeof value === 'number' && value >= 0 && value <= 1) return value
  throw bad('retry.jitter', value, 'true, false or a number from 0 to 1')
}

function bad(option: string, value: unknown, accepted: string): HoldfastError {
  return refused(`${option} cannot be ${show(value)}.`, accepted)
}

function refused(message: string, accepted: string): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', message, { hint: `Use ${accepted}.` })
}

/** Delay after `attempt` (1 is the first) failed with `thrown`. */
export function retryDelayMs(
  policy: ResolvedRetry,
  attempt: number,
  thrown: unknown,
  random: Random,
): number {
  // Cap before jitter: factor ** attempt overflows to Infinity long before the attempts run out, and Infinity times
  // jitter is not a date.
  const cappedMs = Math.min(plainDelayMs(policy, attempt, thrown), policy.maxDelayMs)
  return jittered(cappedMs, policy.jitter, random)
}

function plainDelayMs(policy: ResolvedRetry, attempt: number, thrown: unknown): number {
  if (typeof policy.backoff === 'function') {
    return readDuration(policy.backoff(attempt, toError(thrown)), 'retry.backoff()', { orZero: true })
  }
  switch (policy.backoff) {
    case 'exponential':
      return policy.delayMs * policy.factor ** (attempt - 1)
    case 'linear':
      return policy.delayMs * attempt
    case 'fixed':
      return policy.delayMs
  }
}

/** Spreads out retries, so that jobs that failed together are not retried together. */
export function jittered(ms: number, jitter: number, random: Random): number {
  return Math.round(ms * (1 - jitter * random.float()))
}

const CRASH_BASE_MS = 1_000
const CRASH_CAP_MS = 300_000

/**
 * Delay after a worker died with the job. Stores apply it at the rescue, so it depends on the number of crashes only.
 */
export function crashDelayMs(crashes: number): number {
  return Math.min(CRASH_BASE_MS * 2 ** (crashes - 1), CRASH_CAP_MS)
}
