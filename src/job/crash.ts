/**
 * Decides what happens to a job whose worker was lost. If it may have been running, it returns as a suspect or becomes
 * a dead letter; otherwise it is released as if it had never been claimed.
 */
import { HoldfastError } from '../errors.ts'
import type { Random } from '../std/random.ts'
import { attemptError, recordedError, type AttemptError } from './failure.ts'
import type { WorkerId } from './ids.ts'
import type { AttemptRecord } from './record.ts'
import { crashDelayMs, spread } from './retry.ts'

export interface Crashed {
  readonly worker: string
  readonly attempt: number
  /** Before this one. */
  readonly crashes: number
  readonly maxCrashes: number
  /** Whether its cancel was requested. */
  readonly cancelled: boolean
  /** Result of `mayHaveRun`. */
  readonly mayHaveRun: boolean
}

export interface CrashOutcome {
  readonly to: 'ready' | 'scheduled' | 'dead' | 'cancelled'
  readonly crashes: number
  /** Null for a job that cannot have been running. */
  readonly error: AttemptError | null
  /** Delay until a scheduled job is due; its attempt is not used. */
  readonly delayMs: number
}

/**
 * Whether a lost worker may have been running a job with this many of its open jobs before it, in the order (token,
 * position). A worker starts a job only while fewer than `atOnce` are before it; null if it made no such promise.
 */
export function mayHaveRun(openBefore: number, atOnce: number | null): boolean {
  return atOnce === null || openBefore < atOnce
}

/**
 * Record of the lost attempt; null for a job that cannot have been running. How long the handler ran before its worker
 * was lost is unknown.
 */
export function crashRecord(
  error: AttemptError | null,
  worker: WorkerId,
  claimedAt: number,
  nowMs: number,
): AttemptRecord | null {
  if (error === null) return null
  return {
    attempt: error.attempt,
    worker,
    startedAt: claimedAt,
    durationMs: Math.max(0, nowMs - claimedAt),
    outcome: 'crashed',
    error: recordedError(error),
  }
}

const JITTER = 0.5

export function crashOutcome(job: Crashed, random: Random): CrashOutcome {
  const { worker, attempt, maxCrashes } = job
  if (!job.mayHaveRun)
    return { to: job.cancelled ? 'cancelled' : 'ready', crashes: job.crashes, error: null, delayMs: 0 }
  const crashes = job.crashes + 1
  const lost = new HoldfastError('HF_WORKER_LOST', `Worker ${worker} was lost while it ran this job.`)
  const error = attemptError(lost, attempt, 'worker_lost')
  const to = job.cancelled ? 'cancelled' : crashes > maxCrashes ? 'dead' : 'scheduled'
  const delayMs = to === 'scheduled' ? spread(crashDelayMs(crashes), JITTER, random) : 0
  return { to, crashes, error, delayMs }
}
