/** Reads durations and instants from options, and says what is wrong with those that cannot work. */
import { HoldfastError } from '../errors.ts'
import { parseDuration } from '../std/duration.ts'

/** A point in time: a Date, or an ISO 8601 text with a zone. */
export type Instant = Date | string

const ACCEPTED = "Use milliseconds or a text such as '250ms', '30s', '5m', '2h', '7d'."

interface DurationBounds {
  /** Whether 0 is fine, as for a delay; a timeout or lease of 0 cannot work. */
  readonly orZero?: boolean
}

export function readDuration(value: unknown, option: string, bounds: DurationBounds = {}): number {
  const ms = parseDuration(value)
  if (ms === undefined) {
    throw new HoldfastError('HF_BAD_OPTION', `${option} is ${show(value)}, which is not a duration.`, {
      hint: ACCEPTED,
    })
  }
  if (ms < 0 || (ms === 0 && bounds.orZero !== true)) {
    throw new HoldfastError('HF_BAD_OPTION', `${option} is ${show(value)}; it must be greater than zero.`, {
      hint: ACCEPTED,
    })
  }
  // Beyond the range of a Date, adding it to the time gives no instant.
  if (ms > 8.64e15 / 2) {
    throw new HoldfastError('HF_BAD_OPTION', `${option} is ${show(value)}, which is too long.`, {
      hint: ACCEPTED,
    })
  }
  return ms
}

const WITH_ZONE = /(?:Z|[+-]\d{2}:?\d{2})$/

export function readInstant(value: unknown, option: string): number {
  const ms =
    value instanceof Date ? value.getTime() : typeof value === 'string' ? Date.parse(value) : Number.NaN
  const hasZone = typeof value !== 'string' || WITH_ZONE.test(value)
  if (Number.isNaN(ms) || !hasZone) {
    throw new HoldfastError('HF_BAD_OPTION', `${option} is ${show(value)}, which is not a point in time.`, {
      hint: "Use a Date, or an ISO 8601 text with a zone such as '2030-01-31T09:00:00Z'.",
    })
  }
  return ms
}

function show(value: unknown): string {
  if (value instanceof Date) return 'an invalid Date'
  return typeof value === 'string' ? `'${value}'` : String(value)
}
