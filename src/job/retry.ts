/** When to try again: exponential, linear, fixed or a function, capped and jittered. */
import { jittered, nthPause } from '../std/backoff.ts'
import type { Duration } from '../std/duration.ts'
import type { Random } from '../std/random.ts'
import { toError } from '../std/text.ts'
import { duration, readDuration } from './duration.ts'
import { fn, fraction, locate, readersFor, refused, refuseUnknown, whole, type Located } from './options.ts'

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
const LIMIT = 32_767

export const RETRY_FIELDS = readersFor<RetryPolicy>()({
  attempts: whole(1, LIMIT),
  crashes: whole(0, LIMIT),
  backoff: readBackoff,
  delay: duration(),
  factor: readFactor,
  maxDelay: duration(),
  jitter: readJitter,
  when: fn<NonNullable<RetryPolicy['when']>>(),
})

type RetryPaths = Located<typeof RETRY_FIELDS>
const STORED = locate('retry', RETRY_FIELDS)

/**
 * Fills the blanks of `policy` from `base`; refuses what cannot work. Field by field instead of by `readOptions`, since it
 * is done for each job that is enqueued with a policy of its own.
 */
export function resolveRetry(
  policy: RetryPolicy | undefined,
  base: ResolvedRetry,
  { path, of }: RetryPaths = STORED,
): ResolvedRetry {
  if (policy === undefined) return base
  refuseUnknown(policy, path, RETRY_FIELDS)
  const { attempts, crashes, backoff, delay, factor, maxDelay, jitter, when } = policy
  return Object.freeze({
    attempts: attempts === undefined ? base.attempts : RETRY_FIELDS.attempts(attempts, of.attempts),
    crashes: crashes === undefined ? base.crashes : RETRY_FIELDS.crashes(crashes, of.crashes),
    backoff: backoff === undefined ? base.backoff : readBackoff(backoff, of.backoff),
    factor: factor === undefined ? base.factor : readFactor(factor, of.factor),
    delayMs: delay === undefined ? base.delayMs : RETRY_FIELDS.delay(delay, of.delay),
    maxDelayMs: maxDelay === undefined ? base.maxDelayMs : RETRY_FIELDS.maxDelay(maxDelay, of.maxDelay),
    jitter: jitter === undefined ? base.jitter : readJitter(jitter, of.jitter),
    when: when === undefined ? base.when : RETRY_FIELDS.when(when, of.when),
  })
}

function readBackoff(value: unknown, path: string): Backoff {
  if (typeof value === 'function' || SHAPES.includes(value)) return value as Backoff
  throw refused(path, value, "'exponential', 'linear', 'fixed' or a function")
}

function readFactor(value: unknown, path: string): number {
  if (typeof value === 'number' && value >= 1 && Number.isFinite(value)) return value
  throw refused(path, value, 'a number from 1 on')
}

function readJitter(value: unknown, path: string): number {
  if (typeof value === 'boolean') return value ? DEFAULT_RETRY.jitter : 0
  if (typeof value === 'number') return fraction(value, path)
  throw refused(path, value, 'true, false or a number from 0 to 1')
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
  return spread(cappedMs, policy.jitter, random)
}

function plainDelayMs(policy: ResolvedRetry, attempt: number, thrown: unknown): number {
  if (typeof policy.backoff === 'function') {
    return readDuration(policy.backoff(attempt, toError(thrown)), 'retry.backoff()', { orZero: true })
  }
  switch (policy.backoff) {
    case 'exponential':
      return nthPause({ firstMs: policy.delayMs, longestMs: policy.maxDelayMs }, attempt, policy.factor)
    case 'linear':
      return policy.delayMs * attempt
    case 'fixed':
      return policy.delayMs
  }
}

/** A delay with jitter, in whole milliseconds as stores take it. */
export function spread(ms: number, jitter: number, random: Random): number {
  return Math.round(jittered(ms, random.float(), jitter))
}

const CRASH_BACKOFF = { firstMs: 1_000, longestMs: 300_000 }

/**
 * Delay after a worker died with the job. Stores apply it at the rescue, so it depends on the number of crashes only.
 */
export function crashDelayMs(crashes: number): number {
  return nthPause(CRASH_BACKOFF, crashes)
}
