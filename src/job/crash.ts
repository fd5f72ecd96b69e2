/** What becomes of a job whose worker was lost: it comes back as a suspect, or is given up. */
import { HoldfastError } from '../errors.ts'
import type { Random } from '../std/random.ts'
import { attemptError, recordedError, type AttemptError } from './failure.ts'
import type { WorkerId } from './ids.ts'
import type { AttemptRecord } from './record.ts'
import { crashDelayMs, jittered } from './retry.ts'

export interface Crashed {
  readonly worker: string
  readonly attempt: number
  /** Before this one. */
  readonly crashes: number
  readonly maxCrashes: number
  /** Whether its cancel had been asked for. */
  readonly cancelled: boolean
}

export interface CrashOutcome {
  readonly to: 'scheduled' | 'dead' | 'cancelled'
  readonly crashes: number
  readonly error: AttemptError
  /** Until a scheduled one is due; its attempt is handed back. */
  readonly delayMs: number
}

/** What is remembered of the attempt: how long the handler ran before its worker was lost, nobody knows. */
export function crashRecord(
  error: AttemptError,
  worker: WorkerId,
  claimedAt: number,
  nowMs: number,
): AttemptRecord {
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
  const crashes = job.crashes + 1
  const lost = new HoldfastError('HF_WORKER_LOST', `Worker ${worker} was lost while it ran this job.`)
  const error = attemptError(lost, attempt, 'worker_lost')
  const to = job.cancelled ? 'cancelled' : crashes > maxCrashes ? 'dead' : 'scheduled'
  const delayMs = to === 'scheduled' ? jittered(crashDelayMs(crashes), JITTER, random) : 0
  return { to, crashes, error, delayMs }
}
