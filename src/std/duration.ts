/** Durations as people write them: a number of milliseconds, or '250ms', '30s', '5m', '2h', '7d'. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const SHAPE = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/

/** Milliseconds, or undefined for what is no duration; the caller knows which error to give. */
export function parseDuration(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value !== 'string') return undefined
  const match = SHAPE.exec(value)
  if (match === null) return undefined
  return Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS]
}

/** '850ms', '1.2s', '3m 20s', '2h 5m', '4d 1h': at most two units, for people. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, '')}s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return pair(minutes, 'm', Math.round((ms % 60_000) / 1_000), 's')
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return pair(hours, 'h', minutes % 60, 'm')
  return pair(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit} ${small}${smallUnit}`
}
