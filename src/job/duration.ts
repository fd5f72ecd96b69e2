/** Reads durations and instants from options, and rejects invalid ones with the reason. */
import { types } from 'node:util'
import { HoldfastError } from '../errors.ts'
import { parseDuration } from '../std/duration.ts'
import { show } from './show.ts'

/** A point in time: a Date, or an ISO 8601 string with a zone. */
export type Instant = Date | string

const ACCEPTED = "Use milliseconds or a text such as '250ms', '30s', '5m', '2h', '7d'."

interface DurationBounds {
  /** Whether 0 is allowed, as for a delay; a timeout or lease of 0 cannot work. */
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
    throw new HoldfastError(
      'HF_BAD_OPTION',
      `${option} is ${show(value)}; it must ${bounds.orZero === true ? 'not be negative' : 'be greater than zero'}.`,
      {
        hint: ACCEPTED,
      },
    )
  }
  // Beyond the range of a Date, adding it to the time gives no instant.
  if (ms > 8.64e15 / 2) {
    throw new HoldfastError('HF_BAD_OPTION', `${option} is ${show(value)}, which is too long.`, {
      hint: ACCEPTED,
    })
  }
  return ms
}

/**
 * Matches the whole string, because Date.parse accepts almost anything: '12-31-2030' is a date in the machine's zone.
 */
const WITH_ZONE = /^([+-]\d{6}|\d{4})-(\d\d)-(\d\d)[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/

export function readInstant(value: unknown, option: string): number {
  const ms = types.isDate(value) ? value.getTime() : typeof value === 'string' ? parseInstant(value) : NaN
  if (Number.isNaN(ms)) {
    throw new HoldfastError('HF_BAD_OPTION', `${option} is ${show(value)}, which is not a point in time.`, {
      hint: "Use a Date, or an ISO 8601 text with a zone such as '2030-01-31T09:00:00Z'.",
    })
  }
  return ms
}

function parseInstant(text: string): number {
  const match = WITH_ZONE.exec(text)
  if (match === null) return NaN
  const [, year, month, day] = match
  // Date.parse turns 30 February into 2 March.
  const exists = new Date(`${year}-${month}-${day}T00:00:00Z`).getUTCDate() === Number(day)
  return exists ? Date.parse(text) : NaN
}
