/** Ticks, by hand and over all zones and transitions from 2000 to 2037 against the zone data of this machine. */
import { describe, expect, test } from 'vitest'
import { transitionsOf, zoneNames, type Transition } from '../../test/support/zone-data.ts'
import { ticksOf, type DstPolicy, type NextTick, type Timing } from './timing.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

function ticks(timing: Timing, from: string, count: number): string[] {
  const next = ticksOf(timing)
  const found: string[] = []
  let at = Date.parse(from)
  while (found.length < count) {
    const tick = next(at)
    if (tick === null) break
    found.push(new Date(tick).toISOString().replace('.000Z', 'Z'))
    at = tick
  }
  return found
}

const berlin = (cron: string, dst: DstPolicy = 'once'): Timing => ({ cron, tz: 'Europe/Berlin', dst })

describe('an interval', () => {
  test('counts from 1970, whoever asks', () => {
    expect(ticks({ every: 15 * MINUTE_MS }, '2026-03-01T10:07:30Z', 2)).toEqual([
      '2026-03-01T10:15:00Z',
      '2026-03-01T10:30:00Z',
    ])
    expect(ticks({ every: 15 * MINUTE_MS }, '2026-03-01T10:15:00Z', 1)).toEqual(['2026-03-01T10:30:00Z'])
  })
})

describe('a cron pattern', () => {
  test('goes by local time', () => {
    expect(ticks(berlin('0 9 * * MON-FRI'), '2026-03-27T09:00:00Z', 2)).toEqual([
      '2026-03-30T07:00:00Z',
      '2026-03-31T07:00:00Z',
    ])
  })

  test('may have seconds', () => {
    expect(ticks(berlin('*/20 * * * * *'), '2026-03-01T00:00:00Z', 2)).toEqual([
      '2026-03-01T00:00:20Z',
      '2026-03-01T00:00:40Z',
    ])
  })

  test('that never matches has no tick', () => {
    expect(ticks(berlin('0 0 31 2 *'), '2026-03-01T00:00:00Z', 1)).toEqual([])
  })

  test('that matches a leap day only finds it, over a century that has none', () => {
    const leap: Timing = { cron: '0 12 29 2 *', tz: 'UTC', dst: 'once' }
    expect(ticks(leap, '2028-03-01T00:00:00Z', 1)).toEqual(['2032-02-29T12:00:00Z'])
  })

  test('in the gap comes once, at the next valid instant, unless it is to be skipped', () => {
    // 02:00 to 03:00 does not exist on 29 March 2026.
    const from = '2026-03-28T12:00:00Z'
    expect(ticks(berlin('30 2 * * *'), from, 2)).toEqual(['2026-03-29T01:00:00Z', '2026-03-30T00:30:00Z'])
    expect(ticks(berlin('30 2 * * *', 'both'), from, 1)).toEqual(['2026-03-29T01:00:00Z'])
    expect(ticks(berlin('30 2 * * *', 'skip'), from, 1)).toEqual(['2026-03-30T00:30:00Z'])
    // Six ticks of the gap and the one at its end are one instant.
    expect(ticks(berlin('*/10 * * * *'), '2026-03-29T00:40:00Z', 3)).toEqual([
      '2026-03-29T00:50:00Z',
      '2026-03-29T01:00:00Z',
      '2026-03-29T01:10:00Z',
    ])
  })

  test('that comes twice runs the first time, unless it is to run both times', () => {
    // 02:00 to 03:00 comes twice on 25 October 2026.
    const from = '2026-10-24T12:00:00Z'
    expect(ticks(berlin('30 2 * * *'), from, 2)).toEqual(['2026-10-25T00:30:00Z', '2026-10-26T01:30:00Z'])
    expect(ticks(berlin('30 2 * * *', 'both'), from, 2)).toEqual([
      '2026-10-25T00:30:00Z',
      '2026-10-25T01:30:00Z',
    ])
    expect(ticks(berlin('30 * * * *'), '2026-10-25T00:00:00Z', 2)).toEqual([
      '2026-10-25T00:30:00Z',
      '2026-10-25T02:30:00Z',
    ])
  })

  test('is the same whenever it is asked for: from within the hour that comes twice, too', () => {
    expect(ticks(berlin('30 2 * * *'), '2026-10-25T01:10:00Z', 1)).toEqual(['2026-10-26T01:30:00Z'])
  })

  test('a day that a country left out', () => {
    const apia: Timing = { cron: '0 12 * * *', tz: 'Pacific/Apia', dst: 'once' }
    expect(ticks(apia, '2011-12-29T23:00:00Z', 2)).toEqual(['2011-12-30T10:00:00Z', '2011-12-30T22:00:00Z'])
  })
})

// ── every zone and transition ────────────────────────────────────────────────

const FROM = Date.UTC(2000, 0, 1)
const TO = Date.UTC(2038, 0, 1)
const names = zoneNames()
/** Rare enough to be quick, and it matches in every gap and every repetition of half an hour and more. */
const PATTERN = '7,37 * * * *'
const matches = (localMs: number): boolean => [7, 37].includes(new Date(localMs).getUTCMinutes())
/** So that what is left out or comes twice lies within. */
const windowOf = ({ beforeMs, afterMs }: Transition): number => Math.abs(afterMs - beforeMs) + 40 * MINUTE_MS

/** By looking at every minute around the transition. */
function expected(change: Transition, dst: DstPolicy): number[] {
  const { atMs, beforeMs, afterMs } = change
  const windowMs = windowOf(change)
  const offsetAt = (ms: number): number => (ms < atMs ? beforeMs : afterMs)
  const found = new Set<number>()
  for (let ms = atMs - windowMs; ms <= atMs + windowMs; ms += MINUTE_MS) {
    const localMs = ms + offsetAt(ms)
    const cameBefore = ms >= atMs && localMs < atMs + beforeMs
    if (matches(localMs) && (dst === 'both' || !cameBefore)) found.add(ms)
  }
  for (let localMs = atMs + beforeMs; localMs < atMs + afterMs; localMs += MINUTE_MS)
    if (matches(localMs) && dst !== 'skip') found.add(atMs)
  return [...found].sort((a, b) => a - b)
}

function actual(next: NextTick, change: Transition): number[] {
  const windowMs = windowOf(change)
  const found: number[] = []
  const end = change.atMs + windowMs
  for (let at = next(change.atMs - windowMs - 1); at !== null && at <= end; at = next(at)) found.push(at)
  return found
}

describe.skipIf(names.length === 0)('over all zones from 2000 to 2037', () => {
  test('ticks are what the zone data say', { timeout: 240_000 }, () => {
    const wrong: string[] = []
    const others = new Set<string>()
    const seen = new Set<string>()
    let transitions = 0
    for (const tz of names) {
      const changes = transitionsOf(tz).filter(({ atMs }) => atMs >= FROM && atMs < TO)
      // Many zones are aliases of another one.
      const rules = JSON.stringify(changes)
      if (seen.has(rules)) continue
      if (!isKnownAlike(tz, changes)) {
        others.add(tz)
        continue
      }
      seen.add(rules)
      transitions += changes.length
      for (const dst of ['once', 'skip', 'both'] as const) {
        const next = ticksOf({ cron: PATTERN, tz, dst })
        for (const change of changes)
          if (String(actual(next, change)) !== String(expected(change, dst)))
            wrong.push(`${tz} ${new Date(change.atMs).toISOString()} ${dst}`)
      }
    }
    expect(wrong).toEqual([])
    expect(transitions).toBeGreaterThan(5_000)
    // Node's data and the machine's may be of different years; then some zones differ, and only some.
    expect(others.size).toBeLessThan(names.length / 10)
  })
})

/** Whether Node's data of the zone are those of the machine. */
function isKnownAlike(tz: string, changes: readonly Transition[]): boolean {
  try {
    const format = new Intl.DateTimeFormat('en-US', { timeZone: tz, timeZoneName: 'longOffset' })
    const offsetAt = (ms: number): number => {
      const [, sign, hours, minutes = '0'] = /GMT([+-])(\d+):?(\d+)?/.exec(format.format(ms)) ?? []
      return sign === undefined
        ? 0
        : (Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS) * (sign === '-' ? -1 : 1)
    }
    return changes.every(
      ({ atMs, beforeMs, afterMs }) => offsetAt(atMs - 1) === beforeMs && offsetAt(atMs) === afterMs,
    )
  } catch {
    return false
  }
}
