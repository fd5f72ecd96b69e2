import { describe, expect, test } from 'vitest'
import { firstOpen } from './first-open.ts'
import { slotsOf } from './timing.ts'

const SECOND_MS = 1_000
const NOON = Date.UTC(2030, 0, 1, 12)
const everySecond = slotsOf({ every: SECOND_MS })
const hourly = slotsOf({ cron: '0 * * * *', tz: 'UTC', dst: 'once' })
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
  ])('%s', (_what, nextSlot, lastSlot, nowMs, slot) => {
    expect(firstOpen({ nextSlot, lastSlot }, everySecond, nowMs)).toEqual({ slot, isAstray: false })
  })

  test('is none where none comes', () => {
    expect(firstOpen({ nextSlot: null, lastSlot: NOON }, everySecond, NOON)).toEqual({
      slot: null,
      isAstray: false,
    })
  })

  test.each([
    ['what is stored lies too far ahead', NOON + HOUR_MS, null],
    ['all that was fired lies ahead, too', NOON + HOUR_MS + 1_000, NOON + HOUR_MS],
  ])('is the one that comes, where %s', (_what, nextSlot, lastSlot) => {
    const found = firstOpen({ nextSlot, lastSlot }, everySecond, NOON + 500)
    expect(found).toEqual({ slot: NOON + 1_000, isAstray: true })
  })

  test('is not the last one again, where that is the one that comes', () => {
    const minuteBefore = NOON - 60_000
    expect(firstOpen({ nextSlot: NOON + HOUR_MS, lastSlot: NOON }, hourly, minuteBefore)).toEqual({
      slot: NOON + HOUR_MS,
      isAstray: false,
    })
  })
})
