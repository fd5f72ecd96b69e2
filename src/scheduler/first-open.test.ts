import { describe, expect, test } from 'vitest'
import { firstOpen } from './first-open.ts'
import { ticksOf } from './timing.ts'

const SECOND_MS = 1_000
const NOON = Date.UTC(2030, 0, 1, 12)
const everySecond = ticksOf({ every: SECOND_MS })
const hourly = ticksOf({ cron: '0 * * * *', tz: 'UTC', dst: 'once' })
const HOUR_MS = 3_600_000

describe('the first tick that has not been fired', () => {
  test.each([
    ['is the next one', NOON + 1_000, NOON, NOON + 500, NOON + 1_000],
    ['is the next one if nothing was fired', NOON + 1_000, null, NOON + 500, NOON + 1_000],
    ['is one that is late', NOON, NOON - 1_000, NOON + 9_500, NOON],
    ['comes after the last, if the schedule was not moved on', NOON, NOON, NOON + 500, NOON + 1_000],
    ['is the next one if the last lies ahead', NOON, NOON + HOUR_MS, NOON + 500, NOON],
    ['is never the last, which lies ahead', NOON + 1_000, NOON + 1_000, NOON + 500, NOON + 2_000],
    [
      'is left alone by a clock that was put back a little',
      NOON + 2_000,
      NOON + 1_000,
      NOON + 100,
      NOON + 2_000,
    ],
  ])('%s', (_what, nextTick, lastTick, nowMs, tick) => {
    expect(firstOpen({ nextTick, lastTick }, everySecond, nowMs)).toEqual({ tick, isAstray: false })
  })

  test('is none where none comes', () => {
    expect(firstOpen({ nextTick: null, lastTick: NOON }, everySecond, NOON)).toEqual({
      tick: null,
      isAstray: false,
    })
  })

  test.each([
    ['what is stored lies too far ahead', NOON + HOUR_MS, null],
    ['all that was fired lies ahead, too', NOON + HOUR_MS + 1_000, NOON + HOUR_MS],
  ])('is the one that comes, where %s', (_what, nextTick, lastTick) => {
    const found = firstOpen({ nextTick, lastTick }, everySecond, NOON + 500)
    expect(found).toEqual({ tick: NOON + 1_000, isAstray: true })
  })

  test('is not the last one again, where that is the one that comes', () => {
    const minuteBefore = NOON - 60_000
    expect(firstOpen({ nextTick: NOON + HOUR_MS, lastTick: NOON }, hourly, minuteBefore)).toEqual({
      tick: NOON + HOUR_MS,
      isAstray: false,
    })
  })
})
