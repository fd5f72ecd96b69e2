import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { show } from './show.ts'

describe('a value in a message', () => {
  test('is quoted where it is a text, and short', () => {
    expect(show('a "b"\n')).toBe('"a \\"b\\"\\n"')
    expect(show('x'.repeat(1_000)).length).toBeLessThan(110)
    expect(show(new Date(Number.NaN))).toBe('Invalid Date')
    expect(show(Symbol('s'))).toBe('Symbol(s)')
  })

  test('is on one line', () => {
    expect(show(Array.from({ length: 40 }, () => 'word'))).not.toContain('\n')
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
