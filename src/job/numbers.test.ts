import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HoldfastError } from '../errors.ts'
import { readWhole } from './numbers.ts'
import { show } from './show.ts'

describe('a whole number', () => {
  test.each([1, 5, 10])('is taken as it is: %d', (value) => {
    expect(readWhole(value, 'limit', 1, 10)).toBe(value)
  })

  test.each<[unknown, string]>([
    [0, '0'],
    [11, '11'],
    [2.5, '2.5'],
    [Number.NaN, 'NaN'],
    [Infinity, 'Infinity'],
    ['5', '"5"'],
    [5n, '5n'],
    [null, 'null'],
    [undefined, 'undefined'],
    [true, 'true'],
    [Object.create(null), '[Object: null prototype] {}'],
  ])('is not %o, and the message says what is', (value, shown) => {
    const read = (): number => readWhole(value, 'limit', 1, 10)
    expect(read).toThrow(HoldfastError)
    expect(read).toThrow(`limit is ${shown}; it must be a whole number from 1 to 10.`)
  })
})

describe('a value in a message', () => {
  test('is quoted where it is a text, and short', () => {
    expect(show('a "b"\n')).toBe('"a \\"b\\"\\n"')
    expect(show('x'.repeat(1_000)).length).toBeLessThan(110)
    expect(show(new Date(Number.NaN))).toBe('Invalid Date')
    expect(show(Symbol('s'))).toBe('Symbol(s)')
  })

  test('is never a reason to throw', () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withNullPrototype: true, withDate: true, withMap: true }),
        (value) => {
          expect(show(value).length).toBeLessThan(400)
        },
      ),
    )
  })
})
