/**
 * What becomes of a job whose worker was lost. One that can have been running comes back as a suspect, or is given up;
 * one that cannot is released as if it had never been claimed.
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
  /** Whether its cancel had been asked for. */
  readonly cancelled: boolean
  /** As `mayHaveRun` says. */
  readonly mayHaveRun: boolean
}

export interface CrashOutcome {
  readonly to: 'ready' | 'scheduled' | 'dead' | 'cancelled'
  readonly crashes: number
  /** Null for a job that cannot have been running. */
  readonly error: AttemptError | null
  /** Until a scheduled one is due; its attempt is handed back. */
  readonly delayMs: number
}

/**
 * Whether a lost worker can have been running a job that this many of its open jobs stand before, in the order (token,
 * position). A worker starts a job only while fewer than `atOnce` stand before it; null: it promised nothing.
 */
export function mayHaveRun(openBefore: number, atOnce: number | null): boolean {
  return atOnce === null || openBefore < atOnce
}

/**
 * Record of the lost attempt; null for a job that cannot have been running. Nobody knows how long the handler ran before
 * its worker was lost.
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
