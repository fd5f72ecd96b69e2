import assert from 'node:assert'
import { expect, test } from 'vitest'
import { isProgrammingError } from './programming-error.ts'

function thrownBy(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('it did not throw')
}

const missing: unknown = undefined
const withCode = (code: string): Error => Object.assign(new Error('failed'), { code })

test.each([
  ['a missing method', thrownBy(() => (missing as { f(): void }).f())],
  ['text that is not JSON', thrownBy(() => JSON.parse('{'))],
  ['a number out of range', thrownBy(() => 'x'.repeat(-1))],
  ['a broken assertion', thrownBy(() => assert.equal(1, 2))],
  ['a module that is not installed', withCode('ERR_MODULE_NOT_FOUND')],
  ['one mistake after another', new TypeError('outer', { cause: new RangeError('inner') })],
])('%s is a programming error', (_, error) => {
  expect(isProgrammingError(error)).toBe(true)
})

test.each([
  ['a refused connection', withCode('ECONNREFUSED')],
  ['an error without a code', new Error('connection terminated')],
  ['a fetch without a connection', new TypeError('fetch failed', { cause: withCode('ECONNRESET') })],
  ['an aborted call', new DOMException('aborted', 'AbortError')],
  ['something thrown that is no error', 'broken'],
])('%s is not', (_, error) => {
  expect(isProgrammingError(error)).toBe(false)
})
