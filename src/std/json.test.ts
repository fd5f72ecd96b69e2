import { isDeepStrictEqual } from 'node:util'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeLossy, encodeStrict, JsonRejected } from './json.ts'

const LIMITS = { maxBytes: 262_144, maxDepth: 128 }
const WIDE = { maxBytes: 1e9, maxDepth: 2e6 }

class Money {
  readonly amount = 3
}
class Tags extends Array<string> {}

function rejection(value: unknown, limits = LIMITS): JsonRejected {
  try {
    encodeStrict(value, limits)
  } catch (error) {
    if (error instanceof JsonRejected) return error
    throw error
  }
  throw new Error('was accepted')
}

function lossy(value: unknown, limits = LIMITS): unknown {
  const { json, bytes } = encodeLossy(value, limits)
  if (json === undefined) return undefined
  expect(bytes).toBe(Buffer.byteLength(json))
  expect(encodeStrict(JSON.parse(json), limits)).toBeTypeOf('string')
  return JSON.parse(json)
}

function cyclic(): object {
  const user: Record<string, unknown> = { name: 'a' }
  return { user: Object.assign(user, { friends: [{ best: user }] }) }
}

function nested(depth: number): unknown {
  let value: unknown[] = []
  for (let level = 1; level < depth; level++) value = [value]
  return value
}

function throwing(): never {
  throw new Error('no\0pe')
}

const throwingProxy = (target: object): object =>
  new Proxy(target, { get: throwing, ownKeys: throwing, getPrototypeOf: throwing, has: throwing })

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const refusing = (target: object, key: PropertyKey): object =>
  Object.defineProperty(target, key, { get: throwing, enumerable: true })

const hidden = (key: PropertyKey, value: unknown): object => Object.defineProperty({}, key, { value })

describe('encodeStrict accepts what JSON keeps', () => {
  test.each<[string, unknown, string]>([
    ['null', null, 'null'],
    ['a string', 'ä"\n😀', '"ä\\"\\n😀"'],
    ['-0, which equals 0', -0, '0'],
    ['control characters other than NUL', '\u001B[31m', '"\\u001b[31m"'],
    ['text that only looks like an escape', 'C:\\u0000 \\ud800', '"C:\\\\u0000 \\\\ud800"'],
    ['an undefined property, by dropping it', { a: undefined, b: 1 }, '{"b":1}'],
    ['the same, by the exact writer', { a: undefined, b: '\\u0000' }, '{"b":"\\\\u0000"}'],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['a property that is not enumerable, by ignoring it', hidden('a', 1), '{}'],
    ['a symbol key that is not enumerable, by ignoring it', hidden(Symbol('a'), 1), '{}'],
    ['keys that are also inherited', { constructor: 1, toJSON: 2 }, '{"constructor":1,"toJSON":2}'],
    ['a getter that returns data', { get a() { return [1] } }, '{"a":[1]}'], // prettier-ignore
    ['a proxy that behaves', new Proxy({ a: [1] }, {}), '{"a":[1]}'],
    ['objects and arrays of another realm', runInNewContext('({ a: [{ b: 1 }] })'), '{"a":[{"b":1}]}'],
    ['empty containers', [{}, [], ''], '[{},[],""]'],
  ])('%s', (_, value, json) => {
    expect(encodeStrict(value, LIMITS)).toBe(json)
  })

  test('a repeated reference that is no cycle, on both ways', () => {
    const shared = { a: 1 }
    expect(encodeStrict([shared, shared, { shared }], LIMITS)).toBe('[{"a":1},{"a":1},{"shared":{"a":1}}]')
    expect(encodeStrict([shared, shared, '\\u0000'], LIMITS)).toBe('[{"a":1},{"a":1},"\\\\u0000"]')
  })

  test('a plain object while a library has extended Object.prototype', () => {
    const extension = { value: throwing, enumerable: true, configurable: true, writable: true }
    Object.defineProperty(Object.prototype, 'extended', extension)
    const json = encodeStrict({ a: { b: 1 } }, LIMITS)
    Reflect.deleteProperty(Object.prototype, 'extended')
    expect(json).toBe('{"a":{"b":1}}')
  })
})

describe('encodeStrict rejects, with the path', () => {
  const at = (value: unknown): unknown => ({ user: { tags: [0, value] } })

  test.each<[string, unknown, string, RegExp]>([
    ['undefined at the root', undefined, '$', /is undefined/],
    ['undefined in an array', at(undefined), '$.user.tags[1]', /is undefined in an array.*null/],
    ['a hole', [1, , 3], '$[1]', /is a hole in an array/], // oxlint-disable-line no-sparse-arrays
    ['a BigInt', at(1n), '$.user.tags[1]', /is a BigInt/],
    ['a symbol', at(Symbol('a')), '$.user.tags[1]', /is a symbol; JSON would drop it/],
    ['a function', { a: throwing }, '$.a', /is a function; JSON would drop it/],
    ['NaN', at(Number.NaN), '$.user.tags[1]', /is NaN; .*null/],
    ['Infinity', at(Infinity), '$.user.tags[1]', /is Infinity/],
    ['-Infinity', at(-Infinity), '$.user.tags[1]', /is -Infinity/],
    ['a cycle', cyclic(), '$.user.friends[0].best', /refers back to \$\.user; .*cycle/],
    ['a Date', at(new Date(0)), '$.user.tags[1]', /is a Date; JSON would turn it into a string/],
    ['a Date of another realm', runInNewContext('({ at: new Date(0) })'), '$.at', /is a Date/],
    ['a Map', at(new Map()), '$.user.tags[1]', /is a Map; JSON would turn it into {}/],
    ['a Set', at(new Set()), '$.user.tags[1]', /is a Set/],
    ['an Error', at(new TypeError('a')), '$.user.tags[1]', /is an Error/],
    ['a RegExp', at(/a/), '$.user.tags[1]', /is a RegExp/],
    ['a Promise', at(Promise.resolve()), '$.user.tags[1]', /is a Promise/],
    ['a Buffer', at(Buffer.from('a')), '$.user.tags[1]', /is a Buffer/],
    ['a typed array', at(new Float64Array(1)), '$.user.tags[1]', /is a typed array/],
    ['an ArrayBuffer', at(new ArrayBuffer(1)), '$.user.tags[1]', /is an ArrayBuffer/],
    ['a boxed number', at(Object(1)), '$.user.tags[1]', /is a boxed primitive/],
    ['a boxed string', at(Object('a')), '$.user.tags[1]', /is a boxed primitive/],
    ['an arguments object', at((function () { return arguments })()), '$.user.tags[1]', /is an arguments object/], // prettier-ignore
    ['a class instance', at(new Money()), '$.user.tags[1]', /is an instance of Money; .*class/],
    ['an array of a subclass', { tags: Tags.of('a') }, '$.tags', /is an instance of Tags/],
    ['an object with a prototype of its own', Object.create({ a: 1 }), '$', /is an instance of Object/],
    ['an object on a bare prototype', Object.create(Object.create(null)), '$', /is an instance of a class/],
    ['a class of another realm', runInNewContext('new (class Far {})()'), '$', /is an instance of Far/],
    ['a toJSON method', at({ toJSON: () => 1 }), '$.user.tags[1]', /has a toJSON method/],
    ['a hidden toJSON method', at(hidden('toJSON', () => 1)), '$.user.tags[1]', /has a toJSON method/],
    ['a symbol key', at({ [Symbol('tag')]: 1 }), '$.user.tags[1][Symbol(tag)]', /is a symbol key/],
    ['a symbol key on an array', Object.assign([], { [Symbol('tag')]: 1 }), '$[Symbol(tag)]', /symbol key/],
    ['a property of an array', { a: Object.assign([1], { n: 1 }) }, '$.a.n', /is a property of an array/],
    ['a match array', 'abc'.match(/b/), '$.index', /property of an array/],
    ['an own __proto__ key', JSON.parse('{"a":{"__proto__":1}}'), '$.a.__proto__', /__proto__ key/],
    ['a __proto__ key that JSON would drop', { ['__proto__']: undefined }, '$.__proto__', /__proto__ key/],
    ['a number that is no index', Object.assign([1], { 4294967295: 1 }), '$["4294967295"]', /of an array/],
    ['NUL in a string', { 'odd key': 'a\0' }, '$["odd key"]', /contains a NUL character/],
    ['NUL in a key', at({ 'a\0': 1 }), '$.user.tags[1]["a\\u0000"]', /has a key with a NUL character/],
    ['a lone high surrogate', at('\uD800a'), '$.user.tags[1]', /contains a lone surrogate/],
    ['a lone low surrogate', at('😀\uDE00'), '$.user.tags[1]', /contains a lone surrogate/],
    ['a lone surrogate in a key', { '\uDBFF': 1 }, '$["\\udbff"]', /has a key with a lone surrogate/],
    ['a getter that throws', { a: refusing({}, 'b') }, '$.a.b', /threw when it was read: no\uFFFDpe/],
    ['a proxy that throws', at(throwingProxy({})), '$.user.tags[1]', /threw when it was read/],
    ['a proxied array that throws', at(throwingProxy([])), '$.user.tags[1]', /threw when it was read/],
    ['a revoked proxy', at(revoked()), '$.user.tags[1]', /threw when it was read/],
    ['a string too long for V8 to copy', ['x'.repeat(2 ** 29 - 24)], '$', /too large: at least 5\d{8} bytes/],
    ['a key as long', { ['x'.repeat(2 ** 28)]: 1 }, '$', /too large/],
    ['an array of four billion holes', Array(2 ** 32 - 1), '$', /too large/], // oxlint-disable-line unicorn/no-new-array
  ])('%s', (_, value, path, problem) => {
    const error = rejection(value)
    expect(error.path).toBe(path)
    expect(error.problem).toMatch(problem)
    expect(error.fix).toMatch(/^[A-Z].*\.$/)
    expect(error.message).toBe(`${error.path} ${error.problem}. ${error.fix}`)
  })

  test('a getter that turns bad once it has been looked at', () => {
    let reads = 0
    const value = { get count() { return reads++ === 0 ? 1 : 2n } } // prettier-ignore
    expect(rejection(value).path).toBe('$.count')
  })

  test('the depth beyond the limit, and not the limit', () => {
    expect(encodeStrict(nested(3), { ...LIMITS, maxDepth: 3 })).toBe('[[[]]]')
    expect(rejection(nested(4), { ...LIMITS, maxDepth: 3 }).path).toBe('$[0][0][0]')
    expect(encodeStrict(nested(128), LIMITS)).toHaveLength(256)
    expect(rejection(nested(129)).problem).toMatch(/too deep; the limit is 128 levels/)
    expect(encodeStrict('a', { ...LIMITS, maxDepth: 0 })).toBe('"a"')
    expect(rejection([], { ...LIMITS, maxDepth: 0 }).path).toBe('$')
  })

  test.each([
    ['ASCII', 'aaaa', 6],
    ['three bytes a character', '€€', 8],
    ['four bytes a pair', '😀', 6],
    ['escapes', '\u0001\n', 10],
    ['an array', [1, 2, 3], 7],
    ['an object', { a: 1, b: [null, true] }, 23],
  ])('the byte beyond the limit, and not the limit: %s', (_, value, bytes) => {
    expect(Buffer.byteLength(encodeStrict(value, { ...LIMITS, maxBytes: bytes }))).toBe(bytes)
    expect(rejection(value, { ...LIMITS, maxBytes: bytes - 1 }).problem).toMatch(/is too large/)
  })

  test('a path of bounded length', () => {
    const error = rejection({ ['k'.repeat(1_000)]: nested(1e5) }, { ...WIDE, maxDepth: 9e4 })
    expect(error.path.length).toBeLessThanOrEqual(300)
    expect(error.path).toMatch(/^\$\["k{59}…"\]\[0\].*…/)
  })
})

describe('encodeStrict and deep values', () => {
  test('writes a hundred thousand levels without overflowing the stack', () => {
    expect(encodeStrict(nested(1e5), WIDE)).toHaveLength(2e5)
  })

  test('rejects what is wrong at the bottom of many levels', () => {
    let value: unknown = 1n
    for (let level = 0; level < 1e5; level++) value = { a: value }
    expect(rejection(value, WIDE).problem).toMatch(/BigInt/)
  })

  test('finds a cycle beside much data without walking the data for each level', () => {
    const value: Record<string, unknown> = { data: Array.from({ length: 10_000 }, (_, index) => index) }
    value['self'] = value
    expect(rejection(value, WIDE).path).toBe('$.self')
  })
})

describe('encodeLossy shows', () => {
  const failure = Object.assign(new TypeError('a\0', { cause: { why: [1n] } }), { code: 'E', secret: 1 })

  test.each<[string, unknown, unknown]>([
    ['plain data as it is', { a: [1, 'b', null, true] }, { a: [1, 'b', null, true] }],
    ['nothing for undefined', undefined, undefined],
    ['nothing for a function', throwing, undefined],
    ['nothing for a symbol', Symbol('a'), undefined],
    ['undefined as JSON does', { a: undefined, b: [undefined] }, { b: [null] }],
    ['functions and symbols as JSON does', { a: throwing, b: [Symbol('a')] }, { b: [null] }],
    ['holes as JSON does', [1, , 3], [1, null, 3]], // oxlint-disable-line no-sparse-arrays
    ['a BigInt as decimal text', { a: 2n ** 64n }, { a: '18446744073709551616' }],
    ['no number as null', [Number.NaN, -Infinity, -0], [null, null, 0]],
    ['a Date', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
    ['an invalid Date', { at: new Date(Number.NaN) }, { at: null }],
    ['what toJSON returns, given its key', { a: { toJSON: (key: string) => [key, 1n] } }, { a: ['a', '1'] }],
    ['a toJSON that returns its object', Object.assign({ a: 1 }, { toJSON() { return this } }), { a: 1 }], // prettier-ignore
    ['a toJSON that returns what holds it', { toJSON() { return { self: this } } }, { self: '[Circular]' }], // prettier-ignore
    ['a Map with text keys', new Map([['a', new Set([1n])]]), { a: ['1'] }],
    ['a Map with other keys', new Map([[1, 'a']]), [[1, 'a']]],
    ['an Error', failure, { name: 'TypeError', message: 'a\uFFFD', code: 'E', cause: { why: ['1'] } }],
    [
      'an Error without its toJSON',
      Object.assign(new Error('a'), { toJSON: throwing }),
      { name: 'Error', message: 'a' },
    ],
    ['boxed primitives', [Object(1), Object('a'), Object(1n)], [1, 'a', '1']],
    ['a typed array', new Uint8Array([1, 2]), [1, 2]],
    ['a Buffer as its toJSON does', Buffer.from('a'), { type: 'Buffer', data: [97] }],
    ['a class instance by its fields', new Money(), { amount: 3 }],
    ['a cycle', cyclic(), { user: { name: 'a', friends: [{ best: '[Circular]' }] } }],
    ['NUL and lone surrogates replaced', { 'a\0': '\0\uD800😀' }, { 'a\uFFFD': '\uFFFD\uFFFD😀' }],
    ['no __proto__ key', JSON.parse('{"__proto__":{"a":1},"b":2}'), { b: 2 }],
    ['no __proto__ key of a Map', new Map([['__proto__', 1]]), {}],
    ['what a getter threw', refusing({ b: 1 }, 'a'), { a: '[Threw: no\uFFFDpe]', b: 1 }],
    ['what a toJSON threw', [{ toJSON: throwing }], ['[Threw: no\uFFFDpe]']],
    ['what a proxy threw', { a: throwingProxy({}) }, { a: '[Threw: no\uFFFDpe]' }],
    [
      'what the cause of an Error threw',
      refusing(new Error('a'), 'cause'),
      { name: 'Error', message: 'a', cause: '[Threw: no\uFFFDpe]' },
    ],
  ])('%s', (_, value, shown) => {
    expect(lossy(value)).toEqual(shown)
  })

  test('a mark for what is too deep', () => {
    expect(lossy({ a: [[1n]], b: 1n }, { ...LIMITS, maxDepth: 2 })).toEqual({ a: ['[Too deep]'], b: '1' })
  })

  test('a set whose subclass iterates for ever', () => {
    class Endless extends Set<number> {
      override *[Symbol.iterator](): Generator<number, undefined> {
        for (;;) yield 1
      }
    }
    expect(lossy(new Endless([7]))).toEqual([7])
  })
})

describe('encodeLossy and its limit of bytes', () => {
  test.each<[string, unknown]>([
    ['plain text', 'é'.repeat(200)],
    ['text that needs cleaning', '\0'.repeat(400)],
    ['many small parts', Array.from({ length: 200 }, () => 1n)],
    ['a string too long for V8 to copy', ['x'.repeat(2 ** 29 - 24)]],
    ['a buffer whose toJSON would take gigabytes', [Buffer.alloc(2 ** 28)]],
    ['an array of four billion holes', Array(2 ** 32 - 1)], // oxlint-disable-line unicorn/no-new-array
  ])('says how large it was at least: %s', (_, value) => {
    const { json, bytes } = encodeLossy(value, { maxBytes: 300, maxDepth: 8 })
    expect(json).toBeUndefined()
    expect(bytes).toBeGreaterThan(300)
  })

  test('says exactly how large plain data is', () => {
    expect(encodeLossy(['€'], { ...LIMITS, maxBytes: 6 })).toEqual({ json: undefined, bytes: 7 })
    expect(encodeLossy(['€'], { ...LIMITS, maxBytes: 7 })).toEqual({ json: '["€"]', bytes: 7 })
  })

  test('ends on a value without end', () => {
    const endless = { toJSON: () => [{ ...endless }, { ...endless }] }
    expect(encodeLossy(endless, { ...LIMITS, maxDepth: 1e6 }).json).toBeUndefined()
  })

  test('takes linear time for a long chain whose every link refers back', () => {
    const first: Record<string, unknown> = {}
    let last = first
    for (let link = 0; link < 1e5; link++) last = last['next'] = { back: last, first }
    const { json } = encodeLossy(first, WIDE)
    expect(json?.match(/Circular/g)).toHaveLength(2e5)
  })
})

describe('for any value', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\0', '\uD800', '\\u0000', '__proto__'),
  )
  const odd = fc.constantFrom<unknown>(null, undefined, -0, Number.NaN, Symbol('a'), throwing)
  const kinds = { withBigInt: true, withBoxedValues: true, withDate: true, withMap: true, withSet: true }
  const shapes = {
    withNullPrototype: true,
    withObjectString: true,
    withSparseArray: true,
    withTypedArray: true,
  }
  const good = fc.oneof(fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean())
  const anything = fc.oneof(
    fc.anything({ ...kinds, ...shapes, key: text, values: [text, odd, good] }),
    fc.anything({ withNullPrototype: true, key: good.map(String), values: [good, fc.constant(undefined)] }),
  )

  // Made inside the property: fast-check itself looks into the values that it is given.
  const hostile = fc.constantFrom<() => unknown>(
    () => throwingProxy({}),
    () => throwingProxy([]),
    () => throwingProxy(throwing),
    () => new Proxy([], { get: (_, key): unknown => (key === 'length' ? Number.NaN : Reflect.get([], key)) }),
    revoked,
    cyclic,
    () => new Money(),
    () => refusing({}, 'a'),
    () => refusing([1], 0),
    () => refusing(new Error('a'), 'message'),
    () => ({ toJSON: throwing }),
  )
  const planted = fc.constantFrom<(value: unknown, hostile: unknown) => unknown>(
    (value) => value,
    (_, hostile) => hostile,
    (value, hostile) => [value, hostile],
    (value, hostile) => ({ value, inner: { hostile } }),
    (value, hostile) => new Map([[value, hostile]]),
  )
  const mixed = fc.record({ value: anything, make: hostile, plant: planted })
  const each = (check: (value: unknown) => boolean | void): void =>
    fc.assert(
      fc.property(mixed, ({ value, make, plant }) => check(plant(value, make()))),
      { numRuns: 2_000 },
    )

  test('JSON values come back equal from encodeStrict', () => {
    const json = fc.jsonValue({ stringUnit: 'binary' }).map((value) => kept(value, isStorable))
    fc.assert(fc.property(json, (value) => isDeepStrictEqual(JSON.parse(encodeStrict(value, LIMITS)), value)))
  })

  test('encodeStrict rejects, or loses only undefined properties', () => {
    each((value) => {
      let json: string
      try {
        json = encodeStrict(value, LIMITS)
      } catch (error) {
        return error instanceof JsonRejected && error.path.startsWith('$')
      }
      const expected = kept(value, () => true)
      return isDeepStrictEqual(JSON.parse(json), expected)
    })
  })

  test('encodeLossy never throws, and what it shows is strict', () => {
    each((value) => void lossy(value))
  })

  test.each([0, 1, 5, 20, 60])('encodeLossy keeps to a limit of %i bytes, whatever the depth', (maxBytes) => {
    each((value) => void lossy(value, { maxBytes, maxDepth: maxBytes % 4 }))
  })
})

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0') && text !== '__proto__'
}

/** The value as its JSON should come back: undefined properties and keys that do not pass dropped, -0 as 0. */
function kept(value: unknown, passes: (text: string) => boolean): unknown {
  if (typeof value === 'string') return passes(value) ? value : ''
  if (Array.isArray(value)) return value.map((element) => kept(element, passes))
  if (typeof value !== 'object' || value === null) return value === 0 ? 0 : value
  const entries = Object.entries(value).filter(([key, child]) => child !== undefined && passes(key))
  return Object.fromEntries(entries.map(([key, child]) => [key, kept(child, passes)]))
}
