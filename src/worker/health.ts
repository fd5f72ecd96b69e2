/** How a worker is, for health checks. */
import type { WorkerSettings } from './options.ts'

export interface WorkerHealth {
  /** Whether the store answered lately: a process that is up but cut off is not healthy. */
  readonly healthy: boolean
  /** Since the last successful call to claim or settle; while there is no room to claim, it asks all the same. */
  readonly lastPollMsAgo: number
  /** Jobs whose handlers run. */
  readonly running: number
  /** Claimed, not started yet. */
  readonly waiting: number
  readonly slots: number
  /** Slots in use: a batch takes one, however many jobs are in it. */
  readonly busy: number
  /** It was told to stop, and perhaps has. */
  readonly stopping: boolean
}

interface WorkerState extends Omit<WorkerHealth, 'healthy' | 'slots'> {
  readonly isRunning: boolean
}

export function healthOf(
  { pollMs, callTimeoutMs, concurrency }: WorkerSettings,
  { isRunning, ...state }: WorkerState,
): WorkerHealth {
  const healthy = isRunning && state.lastPollMsAgo <= 2 * pollMs + callTimeoutMs
  return { healthy, ...state, slots: concurrency }
}
