/** From when on a worker counts as unhealthy. */
import { duration } from '../job/duration.ts'
import { fraction, readersFor, whole, type Read } from '../job/options.ts'
import type { Duration } from '../std/duration.ts'

export interface HealthLimits {
  /**
   * How long it may finish nothing while jobs wait for it. A worker with nothing to do is not idle in this sense; one
   * whose jobs take longer than this needs a higher limit. @default '30m'
   */
  readonly idle?: Duration
  /**
   * The share of its attempts that may fail, from 0 to 1: of the last five minutes, or of as many more, up to half an
   * hour, as make ten attempts. Fewer than ten are not judged. @default 0.1
   */
  readonly errorRate?: number
  /** The most jobs that may wait, ready to run, in the queues that it reads. @default 1,000 */
  readonly queueSize?: number
}

export interface ResolvedLimits {
  readonly idleMs: number
  readonly errorRate: number
  readonly queueSize: number
}

export const LIMIT_FIELDS = readersFor<HealthLimits>()({
  idle: duration(),
  errorRate: fraction,
  queueSize: whole(0),
})

/** Only what is given. */
export function limitsFrom({
  idle,
  errorRate,
  queueSize,
}: Read<typeof LIMIT_FIELDS>): Partial<ResolvedLimits> {
  return {
    ...(idle !== undefined && { idleMs: idle }),
    ...(errorRate !== undefined && { errorRate }),
    ...(queueSize !== undefined && { queueSize }),
  }
}
