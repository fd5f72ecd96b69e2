/** The option `health` of holdfast(). */
import { duration } from '../job/duration.ts'
import { readersFor, readOptions } from '../job/options.ts'
import type { Duration } from '../std/duration.ts'
import {
  THRESHOLD_FIELDS,
  thresholdsFrom,
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

export const DEFAULT_HEALTH: HealthSettings = Object.freeze({
  everyMs: 30_000,
  thresholds: Object.freeze({ idleMs: 30 * 60_000, errorRate: 0.1, queueSize: 1_000 }),
})

const FIELDS = readersFor<HealthOptions>()({
  every: duration({ minMs: 1_000, maxMs: 3_600_000 }),
  ...THRESHOLD_FIELDS,
})

export function readHealthOptions(given: unknown, path: string): HealthSettings {
  const { every: everyMs = DEFAULT_HEALTH.everyMs, ...thresholds } = readOptions(given, path, FIELDS)
  return { everyMs, thresholds: { ...DEFAULT_HEALTH.thresholds, ...thresholdsFrom(thresholds) } }
}
