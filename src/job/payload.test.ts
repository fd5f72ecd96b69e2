import { type } from 'arktype'
import fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { InvalidInputError } from '../errors.ts'
import { encodePayload, encodeResult, parseInput, PAYLOAD_LIMITS } from './payload.ts'

/** { to: string, retries: whole number with a default of 3 }, by each library. */
const SCHEMAS: readonly (readonly [library: string, schema: StandardSchemaV1])[] = [
  ['zod', z.object({ to: z.string(), retries: z.number().int().default(3) })],
  ['valibot', v.object({ to: v.string(), retries: v.optional(v.pipe(v.number(), v.integer()), 3) })],
  ['arktype', type({ to: 'string', retries: 'number.integer = 3' })],
]
/** The same check, by a function that answers later. */
const LATER: readonly (readonly [library: string, schema: StandardSchemaV1])[] = [
  ['zod', z.object({ to: z.string().refine((to) => Promise.resolve(to !== 'nobody'), 'is nobody') })],
  [
    'valibot',
    v.objectAsync({
      to: v.pipeAsync(
        v.string(),
        v.checkAsync((to) => Promise.resolve(to !== 'nobody'), 'is nobody'),
      ),
    }),
  ],
]

async function refusal(run: () => unknown): Promise<InvalidInputError> {
  try {
    await run()
  } catch (error) {
    if (error instanceof InvalidInputError) return error
    throw error
  }
  throw new Error('was accepted')
}

describe.each(SCHEMAS)('an input judged by %s', (_, schema) => {
  test('is parsed at once, with defaults', () => {
    expect(parseInput(schema, { to: 'a' }, 'mail')).toEqual({ to: 'a', retries: 3 })
  })

  test('is stored raw, so that defaults apply when the job runs', () => {
    const raw = { to: 'a' }
    parseInput(schema, raw, 'mail')
    const payload = encodePayload(raw, 'mail')
    expect(payload).toBe('{"to":"a"}')
    expect(parseInput(schema, JSON.parse(payload), 'mail')).toEqual({ to: 'a', retries: 3 })
  })

  test('is refused with the path and the reason of each issue', async () => {
    const error = await refusal(() => parseInput(schema, { to: 5, retries: 'x' }, 'mail'))
    expect(error.code).toBe('HF_INVALID_INPUT')
    expect(error.issues.map(({ path }) => path)).toEqual(['to', 'retries'])
    expect(error.message).toMatch(/^The input of job "mail" is not valid\. to\b.+; retries\b.+\.$/)
  })

  test('is refused without a path where it is wrong as a whole', async () => {
    const error = await refusal(() => parseInput(schema, 5, 'mail'))
    expect(error.issues.map(({ path }) => path)).toEqual([''])
    expect(error.message).not.toContain(': :')
  })

  test('that should be there cannot be null or undefined', async () => {
    for (const input of [null, undefined]) {
      const error = await refusal(() => parseInput(schema, input, 'mail'))
      expect(error.code).toBe('HF_INVALID_INPUT')
    }
  })
})

describe('an input with nested data', () => {
  test.each<[string, StandardSchemaV1]>([
    ['zod', z.object({ users: z.array(z.object({ age: z.number() })) })],
    ['valibot', v.object({ users: v.array(v.object({ age: v.number() })) })],
    ['arktype', type({ users: type({ age: 'number' }).array() })],
  ])('is refused by %s with a dotted path', async (_, schema) => {
    const error = await refusal(() => parseInput(schema, { users: [{ age: 1 }, { age: 'x' }] }, 'mail'))
    expect(error.issues.map(({ path }) => path)).toEqual(['users.1.age'])
  })
})

describe.each(LATER)('an input judged later by %s', (_, schema) => {
  test('is a promise, kept or broken as the schema says', async () => {
    const good = parseInput(schema, { to: 'a' }, 'mail')
    expect(good).toBeInstanceOf(Promise)
    expect(await good).toEqual({ to: 'a' })
    const error = await refusal(() => parseInput(schema, { to: 'nobody' }, 'mail'))
    expect(error.message).toBe('The input of job "mail" is not valid. to: is nobody.')
  })
})

describe('no input', () => {
  test('is stored as null and comes back as undefined', () => {
    expect(encodePayload(undefined, 'mail')).toBe('null')
    expect(parseInput(undefined, undefined, 'mail')).toBeUndefined()
    expect(parseInput(undefined, JSON.parse('null'), 'mail')).toBeUndefined()
  })

  test.each<[string, StandardSchemaV1, unknown]>([
    ['an optional input, zod', z.string().optional(), undefined],
    ['an input with a default, zod', z.object({ n: z.number() }).default({ n: 1 }), { n: 1 }],
    ['an optional input, valibot', v.optional(v.string()), undefined],
    ['an input with a default, valibot', v.optional(v.number(), 7), 7],
    ['an optional input, arktype', type('string | undefined'), undefined],
    [
      'an optional input that is judged later',
      z
        .string()
        .optional()
        .refine(() => Promise.resolve(true)),
      undefined,
    ],
  ])('is taken at the enqueue and again at the run by %s', async (_, schema, expected) => {
    expect(await parseInput(schema, undefined, 'mail')).toEqual(expected)
    const stored: unknown = JSON.parse(encodePayload(undefined, 'mail'))
    expect(await parseInput(schema, stored, 'mail')).toEqual(expected)
  })

  test('stays null where the schema takes null', () => {
    expect(parseInput(z.string().nullish(), null, 'mail')).toBeNull()
  })
})

describe('a payload', () => {
  test('is what JSON.parse gives back', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (input) => {
        const text = JSON.stringify(input)
        // Lone surrogates, NUL and __proto__ are refused; the codec's own tests are about these.
        fc.pre(!/\\u0000|\\ud[89a-f]|__proto__/i.test(text))
        expect(JSON.stringify(JSON.parse(encodePayload(input, 'mail')))).toBe(text)
      }),
    )
  })

  test('is 256 KiB and 128 levels at most, unless told', () => {
    expect(PAYLOAD_LIMITS).toEqual({ maxBytes: 262_144, maxDepth: 128 })
    expect(encodePayload('x'.repeat(262_142), 'mail')).toHaveLength(262_144)
  })

  const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) })

  test.each<[string, unknown, string, RegExp]>([
    [
      'a BigInt',
      { a: { n: 5n } },
      'HF_NOT_JSON',
      /^The input of job "mail" cannot be stored: \$\.a\.n is a BigInt/,
    ],
    ['a Date', { list: [new Date(0)] }, 'HF_NOT_JSON', /\$\.list\[0\] is a Date/],
    ['undefined in a list', [undefined], 'HF_NOT_JSON', /\$\[0\] is undefined/],
    ['NaN', { 'a b': Number.NaN }, 'HF_NOT_JSON', /\$\["a b"\] is NaN/],
    ['a NUL byte', { text: 'a\0' }, 'HF_NOT_JSON', /\$\.text contains a NUL character/],
    ['a function as the whole', () => 1, 'HF_NOT_JSON', /^The input of job "mail" is a function/],
    [
      'a text beyond the limit',
      'x'.repeat(262_143),
      'HF_TOO_LARGE',
      /^The input of job "mail" is too large: .+262144\.$/,
    ],
    ['bytes beyond the limit', '€'.repeat(100_000), 'HF_TOO_LARGE', /is too large/],
    [
      'a value that is too deep',
      nested(129),
      'HF_TOO_LARGE',
      /\$\.a\.a.+ is nested too deep; the limit is 128 levels\.$/,
    ],
    [
      'a getter that says it is too large',
      { get a() { throw new Error('too large, too deep') } }, // prettier-ignore
      'HF_NOT_JSON',
      /\$\.a threw when it was read: too large, too deep\.$/,
    ],
  ])('is refused for %s', (_, input, code, message) => {
    expect(() => encodePayload(input, 'mail')).toThrow(
      expect.objectContaining({
        code,
        message: expect.stringMatching(message),
        hint: expect.stringMatching(/\.$/),
        cause: expect.objectContaining({ name: 'JsonRejected' }),
      }),
    )
  })

  test('is refused by the limits that it is given', () => {
    expect(() => encodePayload('abc', 'mail', { maxBytes: 4, maxDepth: 1 })).toThrow(/limit is 4/)
    expect(() => encodePayload([[]], 'mail', { maxBytes: 40, maxDepth: 1 })).toThrow(/limit is 1 level/)
  })
})

describe('a result', () => {
  class Money {
    readonly amount = 5
  }

  test.each<[string, unknown, string | null]>([
    ['nothing', undefined, null],
    ['null', null, 'null'],
    ['data', { a: [1, 'x', true] }, '{"a":[1,"x",true]}'],
    ['a Date', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ['a BigInt', { n: 5n }, '{"n":"5"}'],
    ['an instance', new Money(), '{"amount":5}'],
    ['a NUL byte', 'a\0b', '"a\uFFFDb"'],
    ['NaN', [Number.NaN], '[null]'],
    ['a function, which is nothing', () => 1, null],
    ['a cycle', ((o: Record<string, unknown>) => Object.assign(o, { self: o }))({}), '{"self":"[Circular]"}'],
  ])('is cleaned rather than refused: %s', (_, result, json) => {
    expect(encodeResult(result)).toEqual({ json, dropped: false })
  })

  test('is dropped, not thrown, where it is too large', () => {
    expect(encodeResult('x'.repeat(300_000))).toEqual({ json: null, dropped: true })
    expect(encodeResult([1, 2, 3], { maxBytes: 3, maxDepth: 9 })).toEqual({ json: null, dropped: true })
  })

  test('is kept where it is only too deep', () => {
    let deep: unknown = 1
    for (let level = 0; level < 500; level++) deep = [deep]
    const { json, dropped } = encodeResult(deep)
    expect([dropped, json?.includes('[Too deep]')]).toEqual([false, true])
  })

  test('never throws', () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withNullPrototype: true, withMap: true, withSet: true }),
        (result) => {
          const { json } = encodeResult(result)
          if (json !== null) JSON.parse(json)
        },
      ),
    )
  })
})
