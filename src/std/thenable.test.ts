import { expect, test } from 'vitest'
import { isThenable } from './thenable.ts'

test.each<[string, unknown, boolean]>([
  ['a promise', Promise.resolve(), true],
  ['an object with a method then', { then: () => undefined }, true],
  ['data with a field then', { then: 'tomorrow' }, false],
  ['an object', {}, false],
  ['null', null, false],
  ['a text', 'then', false],
])('%s', (_, value, expected) => {
  expect(isThenable(value)).toBe(expected)
})
