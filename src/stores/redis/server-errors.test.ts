import { expect, test } from 'vitest'
import { explain } from './server-errors.ts'

test('a failed connection is an outage', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  expect(explain(refused)).toMatchObject({ code: 'HF_STORE_UNREACHABLE', cause: refused })
})

test('a bug of ours is not: it comes out as it is', () => {
  const bug = new TypeError('text is undefined')
  expect(explain(bug)).toBe(bug)
})
