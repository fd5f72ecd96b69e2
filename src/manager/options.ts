/** The option `health` of holdfast(). */
import { duration } from '../job/duration.ts'
import { readersFor, readOptions } from '../job/options.ts'
import type { Duration } from '../std/duration.ts'
import { limitsFrom, LIMIT_FIELDS, type HealthLimits, type ResolvedLimits } from '../worker/limits.ts'

export interface HealthOptions extends HealthLimits {
  /**
   * How often, while a worker runs, workers and checks are looked at and the status of the workers is renewed in the
   * store; from 1s to 1h. A process that vanished is listed for three times as long. @default '30s'
   */
  readonly every?: Duration
}

export interface HealthSettings {
  readonly everyMs: number
  readonly limits: ResolvedLimits
}

export const DEFAULT_HEALTH: HealthSettings = Object.freeze({
  everyMs: 30_000,
  limits: Object.freeze({ idleMs: 30 * 60_000, errorRate: 0.1, queueSize: 1_000 }),
})

const FIELDS = readersFor<HealthOptions>()({
  every: duration({ minMs: 1_000, maxMs: 3_600_000 }),
  ...LIMIT_FIELDS,
})

export function readHealthOptions(given: unknown, path: string): HealthSettings {
  const { every: everyMs = DEFAULT_HEALTH.everyMs, ...limits } = readOptions(given, path, FIELDS)
  return { everyMs, limits: { ...DEFAULT_HEALTH.limits, ...limitsFrom(limits) } }
}
