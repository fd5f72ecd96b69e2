/** Reads durations and instants from options, and rejects invalid ones with the reason. */
import { types } from 'node:util'
import { formatDuration, parseDuration } from '../std/duration.ts'
import { refused, type Reader } from './options.ts'

/** A point in time: a Date, or an ISO 8601 string with a zone. */
export type Instant = Date | string

const HINT = "Use milliseconds or a text such as '250ms', '30s', '5m', '2h', '7d'."
/** Beyond the range of a Date: adding it to the time gives no instant. */
const LONGEST_MS = 8.64e15 / 2

interface DurationBounds {
  /** Whether 0 is allowed, as for a delay; a timeout or lease of 0 cannot work. */
  readonly orZero?: boolean
  readonly minMs?: number
  readonly maxMs?: number
}

const ABOVE_ZERO: DurationBounds = {}

/** Milliseconds. */
export function readDuration(value: unknown, path: string, bounds = ABOVE_ZERO): number {
  const { orZero = false, minMs = 0, maxMs = LONGEST_MS } = bounds
  const ms = parseDuration(value)
  if (ms === undefined || ms < minMs || (ms === 0 && !orZero))
    throw refused(path, value, accepted(bounds), HINT)
  if (ms > maxMs) throw refused(path, value, accepted({ ...bounds, maxMs }), HINT)
  return ms
}

function accepted({ orZero = false, minMs = 0, maxMs }: DurationBounds): string {
  const from = minMs > 0 ? `from ${formatDuration(minMs)}` : orZero ? 'of 0 or more' : 'above 0'
  return `a duration ${from}${maxMs === undefined ? '' : ` to ${formatDuration(maxMs)}`}`
}

export function duration(bounds?: DurationBounds): Reader<number> {
  return (value, path) => readDuration(value, path, bounds)
}

/** Whole, because Date.parse takes nearly anything: '12-31-2030' is a date to it, in the zone of the machine. */
const WITH_ZONE = /^([+-]\d{6}|\d{4})-(\d\d)-(\d\d)[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/

/** Milliseconds since 1970. */
export function readInstant(value: unknown, path: string): number {
  const ms = types.isDate(value) ? value.getTime() : typeof value === 'string' ? parseInstant(value) : NaN
  if (!Number.isNaN(ms)) return ms
  const hint = "Use a Date, or an ISO 8601 text with a zone such as '2030-01-31T09:00:00Z'."
  throw refused(path, value, 'a point in time', hint)
}

function parseInstant(text: string): number {
  const match = WITH_ZONE.exec(text)
  if (match === null) return NaN
  const [, year, month, day] = match
  // Date.parse turns 30 February into 2 March.
  const exists = new Date(`${year}-${month}-${day}T00:00:00Z`).getUTCDate() === Number(day)
  return exists ? Date.parse(text) : NaN
}
