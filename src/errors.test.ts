import { describe, expect, test } from 'vitest'
import {
  Aborted,
  DependencyDown,
  ERROR_HINTS,
  Fatal,
  HoldfastError,
  InvalidInputError,
  PartialEnqueueError,
  ResourcesExhausted,
  RetryIn,
  type ErrorCode,
  type InputIssue,
} from './errors.ts'

const CODES = Object.keys(ERROR_HINTS) as ErrorCode[]

describe('an error of Holdfast', () => {
  test.each(CODES)('%s has a hint that is a sentence', (code) => {
    expect(code).toMatch(/^HF_[A-Z]+(_[A-Z]+)*$/)
    const { hint } = new HoldfastError(code, 'Something happened.')
    expect(hint).toMatch(/^[A-Z].{20,}[.?!]$/)
  })

  test('has a code, a message, a hint and a cause', () => {
    const cause = new Error('refused')
    const error = new HoldfastError('HF_CLOSED', 'It is closed.', { cause, hint: 'Open it.' })
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({
      name: 'HoldfastError',
      code: 'HF_CLOSED',
      message: 'It is closed.',
      hint: 'Open it.',
      cause,
    })
    expect(String(error)).toBe('HoldfastError: It is closed.')
  })

  test('has no cause where none is given', () => {
    expect('cause' in new HoldfastError('HF_CLOSED', 'It is closed.')).toBe(false)
  })
})

describe('an enqueue of many that failed in part', () => {
  const counts = { inserted: 7, duplicates: 1 }
  const shortfall = { failed: 2, failures: [], stoppedAt: null }

  test('says how many failed, which was the first and why', () => {
    const failures = [
      { index: 3, error: new Error('It is too large.') },
      { index: 8, error: new Error('It is not JSON.') },
    ]
    const error = new PartialEnqueueError(counts, { ...shortfall, failures })
    expect(error.message).toBe('2 of the jobs could not be enqueued. First, at index 3: It is too large.')
    expect(error.cause).toBe(failures[0]?.error)
    expect(error).toMatchObject({
      name: 'PartialEnqueueError',
      code: 'HF_PARTIAL_ENQUEUE',
      ...counts,
      ...shortfall,
      failures,
      hint: ERROR_HINTS.HF_PARTIAL_ENQUEUE,
    })
  })

  test('ends as a sentence does, whatever the first error says', () => {
    const of = (message: string): string =>
      new PartialEnqueueError(counts, { ...shortfall, failures: [{ index: 0, error: new Error(message) }] })
        .message
    expect(of('ECONNREFUSED')).toBe('2 of the jobs could not be enqueued. First, at index 0: ECONNREFUSED.')
    expect(of('Really?')).toMatch(/: Really\?$/)
    expect(new PartialEnqueueError(counts, shortfall).message).toBe('2 of the jobs could not be enqueued.')
  })
})

describe('an invalid input', () => {
  const message = (...issues: InputIssue[]): string => new InvalidInputError('mail', issues).message

  test.each<[string, InputIssue[], string]>([
    ['with its path', [{ path: 'user.age', message: 'Too small' }], 'user.age: Too small.'],
    ['without one', [{ path: '', message: 'Expected object.' }], 'Expected object.'],
    [
      'with a path that is in the message',
      [{ path: 'to', message: 'to must be a string' }],
      'to must be a string.',
    ],
    ['with a message that only begins like its path', [{ path: 'to', message: 'too long' }], 'to: too long.'],
    [
      'one after the other',
      [
        { path: 'a', message: 'missing' },
        { path: 'b.0', message: 'Invalid' },
      ],
      'a: missing; b.0: Invalid.',
    ],
  ])('names the job and each issue: %s', (_, issues, text) => {
    expect(message(...issues)).toBe(`The input of job "mail" is not valid. ${text}`)
  })

  test('lists five issues and counts the others, all of which it keeps', () => {
    const issues = Array.from({ length: 8 }, (_, index) => ({ path: `p${index}`, message: 'bad' }))
    const error = new InvalidInputError('mail', issues)
    expect(error.message).toBe(
      'The input of job "mail" is not valid. p0: bad; p1: bad; p2: bad; p3: bad; p4: bad; and 3 more.',
    )
    expect(error).toMatchObject({ name: 'InvalidInputError', code: 'HF_INVALID_INPUT', issues })
  })
})

describe('what a handler throws to say what its failure means', () => {
  test.each<[Error, string, string]>([
    [new Fatal('gone'), 'Fatal', 'gone'],
    [new RetryIn('5m'), 'RetryIn', 'The handler asked to be retried.'],
    [new RetryIn(5_000, 'Rate limited.'), 'RetryIn', 'Rate limited.'],
    [new DependencyDown('Stripe'), 'DependencyDown', 'Stripe is down.'],
    [new ResourcesExhausted('disk full'), 'ResourcesExhausted', 'disk full'],
    [new Aborted('timeout', 'It took too long.'), 'Aborted', 'It took too long.'],
  ])('%s', (error, name, message) => {
    expect(error).toBeInstanceOf(Error)
    expect([error.name, error.message]).toEqual([name, message])
  })

  test('keeps what it was given', () => {
    const cause = new Error('why')
    expect(new Fatal('x', { cause }).cause).toBe(cause)
    expect(new RetryIn('5m', 'x', { cause })).toMatchObject({ delay: '5m', cause })
    const down = new DependencyDown('Stripe', { retryAfter: '1m', cause })
    expect(down).toMatchObject({ dependency: 'Stripe', retryAfter: '1m', cause })
    expect('cause' in new DependencyDown('Stripe')).toBe(false)
    expect(new Aborted('lease_lost', 'x')).toMatchObject({ why: 'lease_lost', code: 'HF_ABORTED' })
  })

  test.each([
    ['RetryIn', () => new RetryIn('soon' as '1s')],
    ['RetryIn', () => new RetryIn(-5)],
    ['DependencyDown', () => new DependencyDown('Stripe', { retryAfter: 'a bit' as '1s' })],
  ])('%s with a delay that is none says so instead of being ignored', (name, make) => {
    expect(make).toThrow(
      expect.objectContaining({ code: 'HF_BAD_OPTION', message: expect.stringContaining(name) }),
    )
  })
})
