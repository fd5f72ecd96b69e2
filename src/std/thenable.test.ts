import { expect, test } from 'vitest'
import { isThenable } from './thenable.ts'

test.each<[string, unknown, boolean]>([
  ['a promise', Promise.resolve(), true],
  ['an object that inherits a method then', Object.create(Promise.prototype), true],
  ['data with a field then', JSON.parse('{"then":"tomorrow"}'), false],
  ['an object', {}, false],
  ['null', null, false],
  ['a text', 'then', false],
])('%s', (_, value, expected) => {
  expect(isThenable(value)).toBe(expected)
})
