import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatDuration, parseDuration } from './duration.ts'

describe('a duration as people write it', () => {
  test.each<[unknown, number]>([
    [0, 0],
    [250, 250],
    [1.5, 1.5],
    ['0ms', 0],
    ['250ms', 250],
    ['30s', 30_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
    ['1.5h', 5_400_000],
    ['0.5s', 500],
    ['05s', 5_000],
    // What binary fractions would make 1004.9999999999999 and 198719999.99999997.
    ['1.005s', 1_005],
    ['2.3d', 198_720_000],
  ])('%j is %d ms', (value, ms) => {
    expect(parseDuration(value)).toBe(ms)
  })

  test.each<[unknown]>([
    ['5 minutes'],
    ['5 m m'],
    ['5m '],
    ['5M'],
    ['5w'],
    ['m'],
    ['5'],
    [''],
    ['-5s'],
    ['+5s'],
    ['1e3ms'],
    ['.5s'],
    ['5.s'],
    ['1h30m'],
    ['5m\n'],
    ['٣s'],
    ['Infinityms'],
    ['NaNs'],
    [Number.NaN],
    [Infinity],
    [-Infinity],
    [null],
    [undefined],
    [true],
    [5n],
    [[5]],
    [{}],
    [new Date(0)],
  ])('%o is none', (value) => {
    expect(parseDuration(value)).toBeUndefined()
  })

  test('of a whole number of thousandths of a unit is exact to the millisecond', () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.constantFrom('s', 'm', 'h', 'd'), (thousandths, unit) => {
        const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit]
        const text = `${Math.floor(thousandths / 1_000)}.${String(thousandths % 1_000).padStart(3, '0')}${unit}`
        expect(parseDuration(text)).toBe((thousandths * unitMs) / 1_000)
      }),
    )
  })

  test('never throws, whatever it is given', () => {
    fc.assert(fc.property(fc.anything(), (value) => void parseDuration(value)))
  })
})

describe('a duration for people', () => {
  test.each([
    [0, '0ms'],
    [0.4, '0ms'],
    [850, '850ms'],
    [999.4, '999ms'],
    [999.6, '1s'],
    [1_000, '1s'],
    [1_200, '1.2s'],
    [1_249, '1.2s'],
    [30_000, '30s'],
    [59_940, '59.9s'],
    [59_960, '1m'],
    [60_000, '1m'],
    [61_000, '1m 1s'],
    [119_700, '2m'],
    [200_000, '3m 20s'],
    [3_599_400, '59m 59s'],
    [3_599_600, '1h'],
    [3_600_000, '1h'],
    [7_500_000, '2h 5m'],
    [86_399_999, '1d'],
    [86_400_000, '1d'],
    [349_200_000, '4d 1h'],
    [365 * 86_400_000, '365d'],
  ])('%d ms is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  test('has at most two units, none of them overfull, and says nearly what it was given', () => {
    const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
    const MOST: Record<string, number> = { ms: 999, s: 59.9, m: 59, h: 23, d: Infinity }
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e11, noNaN: true }), (ms) => {
        const parts = formatDuration(ms).split(' ')
        expect(parts.length).toBeLessThanOrEqual(2)
        let shownMs = 0
        for (const part of parts) {
          const [, count, unit = ''] = /^([\d.]+)([a-z]+)$/.exec(part) ?? []
          expect(Number(count)).toBeLessThanOrEqual(MOST[unit] as number)
          shownMs += Number(count) * (UNIT_MS[unit] as number)
        }
        // Two units are never further off than one of the smaller: an hour a day, a minute an hour.
        expect(Math.abs(shownMs - ms)).toBeLessThanOrEqual(Math.max(1, ms / 20))
      }),
    )
  })
})
