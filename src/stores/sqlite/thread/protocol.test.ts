import { describe, expect, test } from 'vitest'
import { HoldfastError } from '../../../errors.ts'
import { receiveError, sendError } from './protocol.ts'

/** As it arrives on the other side of the thread's port. */
const sent = (error: unknown): Error => receiveError(structuredClone(sendError(error)))

describe('an error of the thread', () => {
  test('that is a bug is none of an outage', () => {
    const bug = new TypeError('rows is not iterable')
    expect(sent(bug)).toMatchObject({
      code: 'HF_STORE_CONTRACT',
      message: 'TypeError: rows is not iterable',
      stack: bug.stack,
    })
  })

  test('of our own stays what it is', () => {
    const full = new HoldfastError('HF_STORE_FULL', 'The disk is full.', { hint: 'Make room.' })
    expect(sent(full)).toMatchObject({ code: 'HF_STORE_FULL', message: full.message, hint: 'Make room.' })
  })

  test('of the system comes as a plain error', () => {
    const error = sent(new Error('disk I/O error'))
    expect(error).not.toBeInstanceOf(HoldfastError)
    expect(error.message).toBe('disk I/O error')
  })
})
