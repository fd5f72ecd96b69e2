/** From when on a worker counts as unhealthy. */
import { duration } from '../job/duration.ts'
import { fraction, readersFor, whole, type Read } from '../job/options.ts'
import type { Duration } from '../std/duration.ts'

export interface HealthThresholds {
  /**
   * How long a worker may finish nothing while jobs wait for it. A worker without jobs is not idle in this sense; if
   * its jobs take longer than this, raise the threshold. @default '30m'
   */
  readonly idle?: Duration
  /**
   * Maximum share of failed attempts, from 0 to 1, over the last five minutes, extended up to half an hour until it
   * contains ten attempts. Fewer than ten are not evaluated. @default 0.1
   */
  readonly errorRate?: number
  /** Maximum number of ready jobs in the queues that the worker reads. @default 1,000 */
  readonly queueSize?: number
}

export interface ResolvedThresholds {
  readonly idleMs: number
  readonly errorRate: number
  readonly queueSize: number
}

export const THRESHOLD_FIELDS = readersFor<HealthThresholds>()({
  idle: duration(),
  errorRate: fraction,
  queueSize: whole(0),
})

/** Only what is given. */
export function thresholdsFrom({
  idle,
  errorRate,
  queueSize,
}: Read<typeof THRESHOLD_FIELDS>): Partial<ResolvedThresholds> {
  return {
    ...(idle !== undefined && { idleMs: idle }),
    ...(errorRate !== undefined && { errorRate }),
    ...(queueSize !== undefined && { queueSize }),
  }
}
