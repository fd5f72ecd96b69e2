import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HoldfastError } from '../errors.ts'
import { readDuration, readInstant } from './duration.ts'

const badOption = (message: string): unknown =>
  expect.objectContaining({
    code: 'HF_BAD_OPTION',
    message,
    hint: expect.stringMatching(/^Use .+'\.$/),
  })

describe('a duration in an option', () => {
  test.each<[unknown, number]>([
    [1, 1],
    [0.5, 0.5],
    ['250ms', 250],
    ['5m', 300_000],
    ['10000d', 864_000_000_000],
  ])('%o is %d ms', (value, ms) => {
    expect(readDuration(value, 'timeout')).toBe(ms)
  })

  test.each<[unknown, string]>([
    ['5 minutes', '`timeout` is "5 minutes"; it must be a duration above 0.'],
    ['', '`timeout` is ""; it must be a duration above 0.'],
    ['-5s', '`timeout` is "-5s"; it must be a duration above 0.'],
    [Number.NaN, '`timeout` is NaN; it must be a duration above 0.'],
    [Infinity, '`timeout` is Infinity; it must be a duration above 0.'],
    [null, '`timeout` is null; it must be a duration above 0.'],
    [undefined, '`timeout` is undefined; it must be a duration above 0.'],
    [5n, '`timeout` is 5n; it must be a duration above 0.'],
    [{}, '`timeout` is {}; it must be a duration above 0.'],
    [Object.create(null), '`timeout` is [Object: null prototype] {}; it must be a duration above 0.'],
    [0, '`timeout` is 0; it must be a duration above 0.'],
    ['0s', '`timeout` is "0s"; it must be a duration above 0.'],
    [-1, '`timeout` is -1; it must be a duration above 0.'],
    [1e16, '`timeout` is 10000000000000000; it must be a duration above 0 to 50000000d.'],
    ['9999999999999d', '`timeout` is "9999999999999d"; it must be a duration above 0 to 50000000d.'],
  ])('%o is refused by name', (value, message) => {
    expect(() => readDuration(value, 'timeout')).toThrow(badOption(message))
  })

  test('may be zero where that makes sense, but never less', () => {
    expect(readDuration(0, 'in', { orZero: true })).toBe(0)
    expect(readDuration('0ms', 'in', { orZero: true })).toBe(0)
    expect(() => readDuration(-1, 'in', { orZero: true })).toThrow(HoldfastError)
  })

  test('gives an instant when it is added to any time, or is refused', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true }), (value) => {
        try {
          const date = new Date(Date.UTC(2100, 0) + readDuration(value, 'in', { orZero: true }))
          expect(date.getTime()).not.toBeNaN()
        } catch (error) {
          expect(error).toBeInstanceOf(HoldfastError)
        }
      }),
    )
  })

  test('is read or refused with our own error, whatever it is', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withDate: true }), (value) => {
        try {
          expect(readDuration(value, 'in')).toBeGreaterThan(0)
        } catch (error) {
          expect(error).toBeInstanceOf(HoldfastError)
        }
      }),
    )
  })
})

describe('a point in time', () => {
  test.each<[string | Date, string]>([
    [new Date('2030-01-31T09:00:00Z'), '2030-01-31T09:00:00.000Z'],
    ['2030-01-31T09:00:00Z', '2030-01-31T09:00:00.000Z'],
    ['2030-01-31T09:00Z', '2030-01-31T09:00:00.000Z'],
    ['2030-01-31 09:00:00Z', '2030-01-31T09:00:00.000Z'],
    ['2030-01-31T09:00:00.123Z', '2030-01-31T09:00:00.123Z'],
    ['2030-01-31T09:00:00+01:00', '2030-01-31T08:00:00.000Z'],
    ['2030-01-31T09:00:00-0530', '2030-01-31T14:30:00.000Z'],
    ['2028-02-29T23:59:59Z', '2028-02-29T23:59:59.000Z'],
    ['1999-12-31T23:59:59Z', '1999-12-31T23:59:59.000Z'],
    ['+012030-01-31T09:00:00Z', '+012030-01-31T09:00:00.000Z'],
  ])('%o is %s', (value, iso) => {
    expect(new Date(readInstant(value, 'at')).toISOString()).toBe(iso)
  })

  test('may be a Date of another realm', () => {
    expect(readInstant(runInNewContext('new Date(5)'), 'at')).toBe(5)
  })

  test.each<[unknown, string]>([
    // Without a zone it would mean another time on another machine.
    ['2030-01-31T09:00:00', '"2030-01-31T09:00:00"'],
    ['2030-01-31', '"2030-01-31"'],
    // What Date.parse takes, and takes for local time, though it ends like a zone.
    ['12-31-2030', '"12-31-2030"'],
    ['31 Jan 2030 09:00 +0100', '"31 Jan 2030 09:00 +0100"'],
    ['2030Z', '"2030Z"'],
    // What Date.parse takes for another day.
    ['2030-02-30T09:00:00Z', '"2030-02-30T09:00:00Z"'],
    ['2030-02-29T09:00:00Z', '"2030-02-29T09:00:00Z"'],
    ['2030-13-01T09:00:00Z', '"2030-13-01T09:00:00Z"'],
    ['2030-01-31T25:00:00Z', '"2030-01-31T25:00:00Z"'],
    ['tomorrow', '"tomorrow"'],
    ['', '""'],
    [1_893_456_000_000, '1893456000000'],
    [new Date(Number.NaN), 'Invalid Date'],
    [null, 'null'],
    [5n, '5n'],
  ])('%o is refused', (value, shown) => {
    expect(() => readInstant(value, 'at')).toThrow(
      badOption(`\`at\` is ${shown}; it must be a point in time.`),
    )
  })

  test('is what a Date writes of itself', () => {
    fc.assert(
      fc.property(fc.date({ noInvalidDate: true }), (date) => {
        expect(readInstant(date.toISOString(), 'at')).toBe(date.getTime())
      }),
    )
  })
})
