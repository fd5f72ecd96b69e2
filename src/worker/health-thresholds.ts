/** Thresholds beyond which a worker counts as unhealthy. */
import { refuseUnknown } from '../core/settings.ts'
import { HoldfastError } from '../errors.ts'
import { readDuration } from '../job/duration.ts'
import { readWhole } from '../job/numbers.ts'
import { show } from '../job/show.ts'
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

const FIELDS: ReadonlySet<string> = new Set(['idle', 'errorRate', 'queueSize'])

/** Only the given thresholds. */
export function readThresholds(thresholds: HealthThresholds, where: string): Partial<ResolvedThresholds> {
  refuseUnknown(thresholds, FIELDS, where)
  const { idle, errorRate, queueSize } = thresholds
  return {
    ...(idle === undefined ? {} : { idleMs: readDuration(idle, `${where}.idle`) }),
    ...(errorRate === undefined ? {} : { errorRate: readShare(errorRate, `${where}.errorRate`) }),
    ...(queueSize === undefined
      ? {}
      : { queueSize: readWhole(queueSize, `${where}.queueSize`, 0, Number.MAX_SAFE_INTEGER) }),
  }
}

function readShare(value: unknown, option: string): number {
  if (typeof value === 'number' && value >= 0 && value <= 1) return value
  throw new HoldfastError('HF_BAD_OPTION', `${option} is ${show(value)}; it must be from 0 to 1.`, {
    hint: 'Use a share of all attempts: 0.1 for 10 %.',
  })
}
