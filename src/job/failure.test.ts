import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  Aborted,
  DependencyDown,
  Fatal,
  HoldfastError,
  InvalidInputError,
  ResourcesExhausted,
  RetryIn,
} from '../errors.ts'
import { attemptError, classify, type FailureKind } from './failure.ts'

class OutOfStock extends Fatal {}

const coded = (code: unknown): Error => Object.assign(new Error('x'), { code })

function throwing(): never {
  throw new Error('gotcha')
}

/** Values that fight back when they are looked at. */
function hostile(): [string, unknown][] {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return [
    ['a revoked proxy', proxy],
    [
      'a proxy that throws',
      new Proxy(new Error('x'), { get: throwing, getPrototypeOf: throwing, has: throwing }),
    ],
    ['a proxy of one of ours that throws', new Proxy(new RetryIn('5m'), { get: throwing })],
    ['an error whose message throws', Object.defineProperty(new Error('x'), 'message', { get: throwing })],
    ['an error whose code throws', Object.defineProperty(new Error('x'), 'code', { get: throwing })],
    ['an object without a prototype', Object.create(null)],
    ['an object whose toString throws', { toString: throwing, [Symbol.toPrimitive]: throwing }],
    ['a function', throwing],
    ['a symbol', Symbol('s')],
    ['a BigInt', 10n],
    ['an error that caused itself', ((error) => Object.assign(error, { cause: error }))(new Error('x'))],
  ]
}

describe('what an error means', () => {
  test.each<[string, unknown, FailureKind]>([
    ['an Error', new Error('x'), 'transient'],
    ['a TypeError', new TypeError('x'), 'transient'],
    ['a text', 'x', 'transient'],
    ['undefined', undefined, 'transient'],
    ['null', null, 'transient'],
    ['RetryIn', new RetryIn('5m'), 'transient'],
    ['Fatal', new Fatal('x'), 'permanent'],
    ['a class of Fatal', new OutOfStock('x'), 'permanent'],
    ['an invalid input', new InvalidInputError('mail', []), 'permanent'],
    ['DependencyDown', new DependencyDown('Stripe'), 'dependency_down'],
    ['ResourcesExhausted', new ResourcesExhausted('x'), 'resources_exhausted'],
    ...['ENOMEM', 'ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ERR_WORKER_OUT_OF_MEMORY'].map(
      (code): [string, unknown, FailureKind] => [code, coded(code), 'resources_exhausted'],
    ),
    ['a plain object with such a code', { code: 'ENOSPC' }, 'resources_exhausted'],
    ['ECONNREFUSED', coded('ECONNREFUSED'), 'transient'],
    ['a code that is no text', coded(28), 'transient'],
    ['an attempt that timed out', new HoldfastError('HF_ATTEMPT_TIMEOUT', 'x'), 'timeout'],
    ['an unknown job', new HoldfastError('HF_UNKNOWN_JOB', 'x'), 'transient'],
    ['a store that is away', new HoldfastError('HF_STORE_UNREACHABLE', 'x'), 'transient'],
    ['an abort by timeout', new Aborted('timeout', 'x'), 'timeout'],
    ['an abort by cancel', new Aborted('cancelled', 'x'), 'cancelled'],
    ['an abort by a lost lease', new Aborted('lease_lost', 'x'), 'lease_lost'],
    ['an abort by shutdown', new Aborted('shutdown', 'x'), 'transient'],
  ])('%s', (_, thrown, kind) => {
    expect(classify(thrown)).toBe(kind)
  })

  test.each(hostile())('of %s is transient', (_, thrown) => {
    expect(classify(thrown)).toBe('transient')
  })
})

describe('the record of a failed attempt', () => {
  test('says what failed, how, and in which attempt', () => {
    const record = attemptError(coded('ECONNRESET'), 3)
    expect(record).toEqual({
      kind: 'transient',
      name: 'Error',
      message: 'x',
      code: 'ECONNRESET',
      stack: expect.stringContaining('Error: x'),
      fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
      attempt: 3,
    })
  })

  test('takes the kind that it is told', () => {
    expect(attemptError(new Error('x'), 1, 'worker_lost').kind).toBe('worker_lost')
    expect(attemptError(new Fatal('x'), 1).kind).toBe('permanent')
  })

  test('can be stored: no NUL, no broken characters, no endless text', () => {
    const record = attemptError(new Error(`a\0b\uD800${'x'.repeat(1e6)}`), 1)
    expect(record.message.startsWith('a\uFFFDb\uFFFD')).toBe(true)
    expect(JSON.stringify(record).length).toBeLessThan(20_000)
    expect(record.message.isWellFormed()).toBe(true)
  })

  test.each(hostile())('of %s is made all the same', (_, thrown) => {
    const record = attemptError(thrown, 1)
    expect(JSON.parse(JSON.stringify(record))).toEqual(record)
    expect(record.message).not.toBe('')
  })

  test('can be stored whatever was thrown', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withMap: true }), (thrown) => {
        const record = attemptError(thrown, 1)
        expect(JSON.parse(JSON.stringify(record))).toEqual(record)
      }),
    )
  })
})
