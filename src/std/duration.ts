/** Durations as people write them: a number of milliseconds, or '250ms', '30s', '5m', '2h', '7d'. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const SHAPE = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/

/** Milliseconds, or undefined if it is not a duration; the caller raises the error. */
export function parseDuration(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value !== 'string') return undefined
  const match = SHAPE.exec(value)
  if (match === null) return undefined
  const ms = Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]
  // Rounds off binary fractions: 2.3 days are 198,720,000 ms, not 198,719,999.99999997.
  return Number(ms.toPrecision(15))
}

/** '850ms', '1.2s', '3m 20s', '2h 5m', '4d 1h': at most two units, for people. */
export function formatDuration(ms: number): string {
  // Rounded before the unit is chosen: 59.96 s are '1m', never '60s', and 119.7 s are '2m', never '1m 60s'.
  if (Math.round(ms) < 1_000) return `${Math.round(ms)}ms`
  const tenths = Math.round(ms / 100)
  if (tenths < 600) return `${tenths / 10}s`
  const seconds = Math.round(ms / 1_000)
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return pair(minutes, 'm', seconds % 60, 's')
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return pair(hours, 'h', minutes % 60, 'm')
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit} ${small}${smallUnit}`
}
