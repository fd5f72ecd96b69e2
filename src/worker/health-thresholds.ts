/** From when on a worker counts as unhealthy. */
import { refuseUnknown } from '../core/settings.ts'
import { HoldfastError } from '../errors.ts'
import { readDuration } from '../job/duration.ts'
import { readWhole } from '../job/numbers.ts'
import { show } from '../job/show.ts'
import type { Duration } from '../std/duration.ts'

export interface HealthThresholds {
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

export interface ResolvedThresholds {
  readonly idleMs: number
  readonly errorRate: number
  readonly queueSize: number
}

const FIELDS: ReadonlySet<string> = new Set(['idle', 'errorRate', 'queueSize'])

/** Only what is given. */
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
