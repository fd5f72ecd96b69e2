import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cleanText, describeError, findFlaw, isError, messageOf, toError } from './text.ts'

function throwing(): never {
  throw new Error('nope')
}

const throwingProxy = (target: object): object =>
  new Proxy(target, { get: throwing, ownKeys: throwing, getPrototypeOf: throwing, has: throwing })

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

function chain(length: number): Error {
  let error = shallow(new Error(`cause ${length}`))
  for (let link = length - 1; link >= 0; link--) error = shallow(new Error(`cause ${link}`, { cause: error }))
  return error
}

/** With a stack of one frame: long ones, as where the tests run may make them, would not all fit. */
function shallow(error: Error): Error {
  error.stack = error.stack?.split('\n').slice(0, 2).join('\n') ?? ''
  return error
}

const key = fc.constantFrom('message', 'name', 'code', 'stack', 'cause', 'errors', 'toString', 'length')
const withAll = {
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
}
const withMore = { withObjectString: true, withSet: true, withSparseArray: true, withTypedArray: true }
const refusing = (target: object, key: PropertyKey): object =>
  Object.defineProperty(target, key, { get: throwing })

// Made inside the property: fast-check itself looks into the values that it is given.
const anything = fc.oneof(
  fc
    .oneof(fc.anything({ ...withAll, ...withMore, key }), fc.string({ unit: 'binary' }))
    .map((value) => () => value),
  fc.constantFrom<() => unknown>(
    () => throwingProxy({}),
    () => throwingProxy(throwing),
    () => throwingProxy(new Error('a')),
    revoked,
    () => Symbol('a\0'),
    () => throwing,
    () => ({ toString: throwing }),
    () => ({ [Symbol.toPrimitive]: throwing }),
    () => refusing({}, Symbol.toStringTag),
    () => refusing(new Error('a'), 'message'),
    () => refusing(new Error('a'), 'stack'),
    () => refusing(new Error('a'), 'cause'),
    () =>
      Object.assign(new Error('a'), {
        name: revoked(),
        message: revoked(),
        code: revoked(),
        cause: revoked(),
      }),
    () => new AggregateError([throwingProxy({}), revoked(), undefined], '\uD800'),
    () => Object.assign(new AggregateError([]), { errors: throwingProxy([]) }),
  ),
)

const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

describe('cleanText', () => {
  test.each<[string, unknown, number, string]>([
    ['leaves a good text alone', 'a😀ä\n', 10, 'a😀ä\n'],
    ['replaces NUL', 'a\0b\0', 10, 'a\uFFFDb\uFFFD'],
    ['replaces lone surrogates and keeps pairs', '\uDC00😀\uD800', 10, '\uFFFD😀\uFFFD'],
    ['leaves a text of just the limit', 'abcde', 5, 'abcde'],
    ['ends a cut text with an ellipsis, within the limit', 'abcdef', 5, 'abcd…'],
    ['does not cut a pair in two', 'abc😀def', 5, 'abc…'],
    ['keeps a pair that fits', 'ab😀def', 5, 'ab😀…'],
    ['leaves only the ellipsis at 1', 'abc', 1, '…'],
    ['leaves nothing at 0', 'abc', 0, ''],
    ['leaves nothing at NaN', 'abc', Number.NaN, ''],
    ['shows primitives', 12n, 10, '12'],
    ['shows undefined', undefined, 10, 'undefined'],
    ['shows a symbol', Symbol('a\0'), 20, 'Symbol(a\uFFFD)'],
    ['uses a toString that says something', new URL('https://a.b/'), 20, 'https://a.b/'],
    ['shows an error', new TypeError('bad'), 20, 'TypeError: bad'],
    ['shows what a plain object holds', { a: [1] }, 20, '{ a: [ 1 ] }'],
    ['shows what an array holds', ['a', {}], 20, "[ 'a', {} ]"],
    [
      'shows an object without a prototype',
      Object.assign(Object.create(null), { a: 1 }),
      40,
      '[Object: null prototype] { a: 1 }',
    ],
    ['shows a function without its source', throwing, 40, '[Function: throwing]'],
    [
      'shows an object whose toString throws',
      { toString: throwing },
      60,
      '{ toString: [Function: throwing] }',
    ],
    ['shows a revoked proxy', revoked(), 40, '<Revoked Proxy>'],
  ])('%s', (_, value, maxChars, text) => {
    expect(cleanText(value, maxChars)).toBe(text)
  })

  test('gives a storable text within the limit for anything', () => {
    fc.assert(
      fc.property(anything, fc.integer({ min: -1, max: 30 }), (make, maxChars) => {
        const text = cleanText(make(), maxChars)
        return isStorable(text) && text.length <= Math.max(0, maxChars) && findFlaw(text) === undefined
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('findFlaw', () => {
  test.each([
    ['a\0', 'a NUL character'],
    ['\uD800', 'a lone surrogate'],
    ['😀\uFFFD', undefined],
  ])('%j: %s', (text, flaw) => {
    expect(findFlaw(text)).toBe(flaw)
  })
})

describe('isError', () => {
  test.each<[string, unknown, boolean]>([
    ['an Error', new TypeError('a'), true],
    ['an Error of another realm', runInNewContext('new Error("a")'), true],
    ['an object that inherits from Error', Object.create(Error.prototype), true],
    ['a DOMException', new DOMException('a'), true],
    ['a plain object with a message', { message: 'a' }, false],
    ['a proxy that throws', throwingProxy(new Error('a')), false],
    ['nothing', undefined, false],
  ])('%s', (_, value, expected) => {
    expect(isError(value)).toBe(expected)
  })
})

describe('toError', () => {
  test('leaves an error as it is, also one of another realm', () => {
    const foreign: unknown = runInNewContext("new TypeError('x')")
    const own = new TypeError('x')
    expect(toError(own)).toBe(own)
    expect(toError(foreign)).toBe(foreign)
  })

  test.each<[string, unknown, string]>([
    ['a text', 'boom', 'boom'],
    ['a symbol', Symbol('s'), 'Symbol(s) was thrown'],
    ['undefined', undefined, 'undefined was thrown'],
    ['an object with a message', { message: 'from RPC' }, 'from RPC'],
  ])('makes an error of %s, which stays its cause', (_, thrown, message) => {
    expect(toError(thrown)).toMatchObject({ name: 'Error', message, cause: thrown })
    expect(messageOf(thrown)).toBe(message)
  })

  test('never throws', () => {
    expect(toError(revoked())).toBeInstanceOf(Error)
    expect(toError(throwingProxy({}))).toBeInstanceOf(Error)
  })
})

describe('describeError names', () => {
  test.each<[string, unknown, { name?: string; message: string; code?: string | null }]>([
    ['an Error', new TypeError('bad'), { name: 'TypeError', message: 'bad', code: null }],
    [
      'its code',
      Object.assign(new Error('a'), { code: 'E\0' }),
      { name: 'Error', message: 'a', code: 'E\uFFFD' },
    ],
    ['a number as code', Object.assign(new Error('a'), { code: 11_000 }), { message: 'a', code: '11000' }],
    ['no other code', Object.assign(new Error('a'), { code: { a: 1 } }), { message: 'a', code: null }],
    [
      'an error in plain clothes',
      { name: 'RpcError', message: 'a', code: 7 },
      { name: 'RpcError', message: 'a', code: '7' },
    ],
    ['NUL and lone surrogates replaced', new Error('\0\uD800'), { message: '\uFFFD\uFFFD' }],
    ['a thrown string', 'boom', { name: 'NonError', message: 'boom', code: null }],
    ['a thrown empty string', '', { name: 'NonError', message: 'an empty string was thrown' }],
    ['a thrown number', 42, { name: 'NonError', message: '42 was thrown' }],
    ['a thrown undefined', undefined, { name: 'NonError', message: 'undefined was thrown' }],
    ['a thrown null', null, { name: 'NonError', message: 'null was thrown' }],
    ['a thrown symbol', Symbol('a'), { name: 'NonError', message: 'Symbol(a) was thrown' }],
    ['a thrown object', { status: 500 }, { name: 'NonError', message: '{ status: 500 }' }],
    [
      'an object without a prototype',
      Object.create(null),
      { name: 'NonError', message: '[Object: null prototype] {}' },
    ],
    [
      'a message that throws',
      Object.defineProperty(new Error('a'), 'message', { get: throwing }),
      { name: 'Error', message: '(no readable message)' },
    ],
    [
      'a message that is no text',
      Object.assign(new Error('a'), { message: { a: 1 } }),
      { message: '{ a: 1 }' },
    ],
    ['a name that is no text', Object.assign(new Error('a'), { name: 3 }), { name: 'Error', message: 'a' }],
    ['a proxy that throws', throwingProxy({}), { name: 'NonError', message: '{}' }],
  ])('%s', (_, thrown, expected) => {
    expect(describeError(thrown)).toMatchObject(expected)
  })

  test('the members of an AggregateError, of which the first five', () => {
    const refused = new AggregateError([new Error('::1 refused'), 'gone'])
    expect(describeError(refused).message).toBe('(2 errors: Error: ::1 refused; NonError: gone)')
    const many = new AggregateError(
      Array.from({ length: 12 }, (_, index) => shallow(new Error(`e${index}`))),
      'all failed',
    )
    const { message, stack } = describeError(many)
    expect(message).toMatch(/^all failed \(12 errors, the first 5: Error: e0; .*Error: e4\)$/)
    expect(stack?.match(/^Error \d of 12: /gm)).toHaveLength(5)
  })

  test('no members of an error that only has a field called errors', () => {
    expect(describeError(Object.assign(new Error('invalid'), { errors: [1] })).message).toBe('invalid')
  })

  test('within its limits', () => {
    const long = 'x'.repeat(100_000)
    const error = Object.assign(new Error(long, { cause: new Error(long) }), { name: long, code: long })
    const { name, message, code, stack } = describeError(error)
    expect([name.length, message.length, code?.length]).toEqual([200, 4_000, 200])
    expect(stack?.length).toBeLessThanOrEqual(8_000)
    expect(stack).toContain('\nCaused by: Error: xxx')
    expect(describeError(new Error(long)).stack).toHaveLength(8_000)
  })
})

describe('the stack of describeError', () => {
  test('is the own stack of an error without a cause', () => {
    const error = new Error('a')
    expect(describeError(error).stack).toBe(error.stack)
  })

  test('goes on with the causes, at most five', () => {
    const { stack } = describeError(chain(8))
    expect(stack).toMatch(/^Error: cause 0\n/)
    expect(stack?.match(/^Caused by: Error: cause \d/gm)).toEqual(
      [1, 2, 3, 4, 5].map((n) => `Caused by: Error: cause ${n}`),
    )
  })

  test('ends where the causes go round', () => {
    const first = new Error('first')
    const second = new Error('second', { cause: first })
    first.cause = second
    expect(describeError(first).stack?.match(/Caused by/g)).toHaveLength(1)
  })

  test('shows a cause that is no error', () => {
    expect(describeError(new Error('a', { cause: { why: 1 } })).stack).toMatch(
      /\nCaused by: NonError: { why: 1 }$/,
    )
  })

  test.each([['a string'], [undefined], [{ a: 1 }]])('is null for what has none: %j', (thrown) => {
    expect(describeError(thrown).stack).toBeNull()
  })
})

describe('for anything thrown', () => {
  test('describeError gives storable texts and never throws', () => {
    const wrapped = fc.constantFrom<(value: unknown) => unknown>(
      (value) => value,
      (cause) => new Error('a', { cause }),
      (member) => new AggregateError([member, member]),
    )
    fc.assert(
      fc.property(anything, wrapped, (make, wrap) => {
        const { name, message, code, stack } = describeError(wrap(make()))
        return name !== '' && [name, message, code ?? '', stack ?? ''].every(isStorable)
      }),
      { numRuns: 2_000 },
    )
  })

  test('describeError answers even at the end of the stack', () => {
    const descend = (): unknown => {
      try {
        return descend()
      } catch (error) {
        return describeError(error).name
      }
    }
    expect(descend()).toMatch(/Error$/)
  })
})
