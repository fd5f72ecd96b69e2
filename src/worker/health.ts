/** The health of a worker. */
import type { WorkerSettings } from './options.ts'

export interface WorkerHealth {
  /** Whether the store answered recently. A process that is up but cut off is not healthy. */
  readonly healthy: boolean
  /** Time since the store last answered a call to claim or settle. The worker polls even if it has no room to claim. */
  readonly lastPollMsAgo: number
  /** Number of jobs whose handlers run. */
  readonly running: number
  /** Number of jobs that are claimed and not started. */
  readonly waiting: number
  readonly slots: number
  /** Slots in use: a batch takes one, however many jobs are in it. */
  readonly busy: number
  /** It is stopping, or has stopped. */
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
