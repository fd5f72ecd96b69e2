/** The option `health` of holdfast(). */
import { HoldfastError } from '../errors.ts'
import { readDuration } from '../job/duration.ts'
import type { Duration } from '../std/duration.ts'
import {
  readThresholds,
  type HealthThresholds,
  type ResolvedThresholds,
} from '../worker/health-thresholds.ts'

export interface HealthOptions extends HealthThresholds {
  /**
   * How often workers and checks are evaluated and the workers' status is written to the store, while a worker runs;
   * from 1s to 1h. A process that vanished stays listed for three times as long. @default '30s'
   */
  readonly every?: Duration
}

export interface HealthSettings {
  readonly everyMs: number
  readonly thresholds: ResolvedThresholds
}

const DEFAULTS: HealthSettings = Object.freeze({
  everyMs: 30_000,
  thresholds: Object.freeze({ idleMs: 30 * 60_000, errorRate: 0.1, queueSize: 1_000 }),
})

export function readHealthOptions({ every, ...thresholds }: HealthOptions = {}): HealthSettings {
  return {
    everyMs: every === undefined ? DEFAULTS.everyMs : readEvery(every),
    thresholds: { ...DEFAULTS.thresholds, ...readThresholds(thresholds, 'health') },
  }
}

function readEvery(every: Duration): number {
  const ms = readDuration(every, 'health.every')
  if (ms >= 1_000 && ms <= 3_600_000) return ms
  throw new HoldfastError('HF_BAD_OPTION', `health.every is ${ms} ms; it must be from 1s to 1h.`)
}
