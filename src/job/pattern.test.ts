import { describe, expect, test } from 'vitest'
import { matches, readEventName, readPattern } from './pattern.ts'

describe('a pattern', () => {
  test.each([
    ['order.paid', 'order.paid', true],
    ['order.paid', 'order.paid.late', false],
    ['order.paid', 'order', false],
    ['order.paid', 'Order.paid', false],
    ['order.*', 'order.paid', true],
    ['order.*', 'order', false],
    ['order.*', 'order.paid.late', false],
    ['*.paid', 'order.paid', true],
    ['*.paid', 'order.refunded', false],
    ['order.*.late', 'order.paid.late', true],
    ['order.*.late', 'order.paid.early', false],
    ['*', 'order', true],
    ['*', 'order.paid', false],
    ['order.**', 'order.paid', true],
    ['order.**', 'order.paid.late', true],
    ['order.**', 'order', false],
    ['order.**', 'orders.paid', false],
    ['*.paid.**', 'order.paid.late.again', true],
    ['*.paid.**', 'order.paid', false],
    ['**', 'order', true],
    ['**', 'order.paid.late', true],
  ])('%s, asked about %s, says %s', (pattern, name, expected) => {
    expect(matches(readPattern(pattern), readEventName(name))).toBe(expected)
  })

  test.each([
    '',
    '.',
    'order.',
    '.paid',
    'order..paid',
    '**.paid',
    'order.**.late',
    'order.pa*',
    'order.***',
    'order paid',
    'ordér',
    'x'.repeat(201),
    7,
    null,
    undefined,
  ])('that is %j is refused', (pattern) => {
    expect(() => readPattern(pattern)).toThrow(expect.objectContaining({ code: 'HF_BAD_PATTERN' }))
  })
})

describe('the name of an event', () => {
  test.each(['order', 'order.paid', 'Pull_Request.re-opened.2', '-.-'])('may be %s', (name) => {
    expect(readEventName(name)).toBe(name)
  })

  test.each(['', 'order.*', '**', 'order.', 'a b', 'a/b', 7, undefined])('cannot be %j', (name) => {
    expect(() => readEventName(name)).toThrow(
      expect.objectContaining({ code: 'HF_BAD_EVENT', hint: expect.stringContaining('dots') }),
    )
  })
})
