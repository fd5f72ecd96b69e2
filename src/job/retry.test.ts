import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { nthPause } from '../std/backoff.ts'
import type { Random } from '../std/random.ts'
import { seededRandom } from '../std/random.ts'
import { crashDelayMs, DEFAULT_RETRY, resolveRetry, retryDelayMs, spread, type RetryPolicy } from './retry.ts'

/** Chance that takes off as much as it may, or nothing. */
const most: Random = { float: () => 1 - 2 ** -32, uint32: () => 2 ** 32 - 1 }
const least: Random = { float: () => 0, uint32: () => 0 }
const error = new Error('failed')

function delays(policy: RetryPolicy, attempts: readonly number[], random = least): number[] {
  const resolved = resolveRetry(policy, DEFAULT_RETRY)
  return attempts.map((attempt) => retryDelayMs(resolved, attempt, error, random))
}

const FIRST_SIX = [1, 2, 3, 4, 5, 6]

describe('the default retry policy', () => {
  test('is that of the design', () => {
    expect(DEFAULT_RETRY).toEqual({
      attempts: 4,
      crashes: 3,
      backoff: 'exponential',
      delayMs: 1_000,
      factor: 2,
      maxDelayMs: 300_000,
      jitter: 0.5,
      when: undefined,
    })
    expect(Object.isFrozen(DEFAULT_RETRY)).toBe(true)
    expect(resolveRetry(undefined, DEFAULT_RETRY)).toBe(DEFAULT_RETRY)
    expect(resolveRetry({}, DEFAULT_RETRY)).toEqual(DEFAULT_RETRY)
  })
})

describe('a backoff', () => {
  test.each<[string, RetryPolicy, number[]]>([
    ['exponential by default', {}, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000]],
    ['exponential by a factor', { delay: 100, factor: 3 }, [100, 300, 900, 2_700, 8_100, 24_300]],
    ['exponential by a factor of one', { factor: 1 }, [1_000, 1_000, 1_000, 1_000, 1_000, 1_000]],
    ['linear', { backoff: 'linear', delay: '5s' }, [5_000, 10_000, 15_000, 20_000, 25_000, 30_000]],
    ['fixed', { backoff: 'fixed', delay: '7s' }, [7_000, 7_000, 7_000, 7_000, 7_000, 7_000]],
    ['a function', { backoff: (attempt) => attempt * 10 }, [10, 20, 30, 40, 50, 60]],
    [
      'a function that answers in texts',
      { backoff: (attempt) => `${attempt}s` },
      [1e3, 2e3, 3e3, 4e3, 5e3, 6e3],
    ],
    ['a function that answers zero', { backoff: () => 0 }, [0, 0, 0, 0, 0, 0]],
    ['capped', { maxDelay: '5s' }, [1_000, 2_000, 4_000, 5_000, 5_000, 5_000]],
    ['linear and capped', { backoff: 'linear', maxDelay: 2_500 }, [1_000, 2_000, 2_500, 2_500, 2_500, 2_500]],
    ['a function and capped', { backoff: () => '1h', maxDelay: '1m' }, [6e4, 6e4, 6e4, 6e4, 6e4, 6e4]],
    ['a first delay above the cap', { delay: '1h' }, [3e5, 3e5, 3e5, 3e5, 3e5, 3e5]],
  ])('is %s', (_, policy, expected) => {
    expect(delays(policy, FIRST_SIX)).toEqual(expected)
  })

  test.each(['exponential', 'linear', 'fixed'] as const)(
    '%s is capped before it is jittered, even at attempt 10,000',
    (backoff) => {
      const policy = { backoff, delay: '1m', maxDelay: '10m', factor: 10 } as const
      const [low] = delays(policy, [10_000], most)
      const [high] = delays(policy, [10_000], least)
      const capMs = backoff === 'fixed' ? 60_000 : 600_000
      expect([low, high]).toEqual([capMs / 2, capMs])
    },
  )

  test('as a function is given the attempt that failed and its error', () => {
    const seen: unknown[] = []
    delays({ backoff: (...args) => (seen.push(args), 1) }, [3])
    expect(seen).toEqual([[3, error]])
  })

  test.each<[string, unknown, string]>([
    ['a text', 'boom', 'boom'],
    ['nothing', undefined, 'undefined was thrown'],
    ['an object with a message', { message: 'from RPC' }, 'from RPC'],
    ['an object that cannot be turned into text', Object.create(null), '[Object: null prototype] {}'],
  ])('as a function is given an Error even where the handler threw %s', (_, thrown, message) => {
    const seen: Error[] = []
    const policy = resolveRetry({ backoff: (__, cause) => (seen.push(cause), 1) }, DEFAULT_RETRY)
    retryDelayMs(policy, 1, thrown, least)
    expect(seen[0]).toBeInstanceOf(Error)
    expect(seen[0]).toMatchObject({ message, cause: thrown })
  })
})

describe('the jitter', () => {
  test.each<[RetryPolicy['jitter'], number, number]>([
    [undefined, 500, 1_000],
    [true, 500, 1_000],
    [false, 1_000, 1_000],
    [0, 1_000, 1_000],
    [0.1, 900, 1_000],
    [1, 0, 1_000],
  ])('%s of a second leaves %d to %d ms', (jitter, low, high) => {
    const policy = jitter === undefined ? {} : { jitter }
    expect(delays(policy, [1], most)).toEqual([low])
    expect(delays(policy, [1], least)).toEqual([high])
  })

  test('stays within its bounds, in whole milliseconds, for any delay', () => {
    fc.assert(
      fc.property(
        fc.nat(1e9),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer(),
        (ms, jitter, seed) => {
          const delayMs = spread(ms, jitter, seededRandom(seed))
          expect(Number.isInteger(delayMs)).toBe(true)
          expect(delayMs).toBeLessThanOrEqual(ms)
          expect(delayMs).toBeGreaterThanOrEqual(Math.floor(ms * (1 - jitter)))
        },
      ),
    )
  })

  test('spreads what failed together', () => {
    const random = seededRandom(1)
    const delaysMs = Array.from({ length: 1_000 }, () => spread(60_000, 0.5, random))
    expect(new Set(delaysMs).size).toBeGreaterThan(900)
    const meanMs = delaysMs.reduce((sum, ms) => sum + ms, 0) / delaysMs.length
    expect(meanMs).toBeGreaterThan(43_000)
    expect(meanMs).toBeLessThan(47_000)
  })

  test('gives a delay that is a date from now, for any policy and attempt', () => {
    const policies = fc.record(
      {
        backoff: fc.constantFrom('exponential', 'linear', 'fixed'),
        delay: fc.integer({ min: 1, max: 1e12 }),
        maxDelay: fc.integer({ min: 1, max: 1e12 }),
        factor: fc.double({ min: 1, max: 1e300, noNaN: true }),
        jitter: fc.double({ min: 0, max: 1, noNaN: true }),
      },
      { requiredKeys: [] },
    ) as fc.Arbitrary<RetryPolicy>
    fc.assert(
      fc.property(policies, fc.integer({ min: 1, max: 32_767 }), fc.integer(), (policy, attempt, seed) => {
        const resolved = resolveRetry(policy, DEFAULT_RETRY)
        const delayMs = retryDelayMs(resolved, attempt, error, seededRandom(seed))
        expect(delayMs).toBeGreaterThanOrEqual(0)
        expect(delayMs).toBeLessThanOrEqual(resolved.maxDelayMs)
      }),
    )
  })
})

describe('a retry policy', () => {
  test('fills its blanks from the one below', () => {
    const when = (): boolean => true
    const definition = resolveRetry({ attempts: 9, delay: '3s', when, jitter: false }, DEFAULT_RETRY)
    expect(definition).toEqual({ ...DEFAULT_RETRY, attempts: 9, delayMs: 3_000, when, jitter: 0 })
    const enqueued = resolveRetry({ attempts: 2, backoff: 'fixed' }, definition)
    expect(enqueued).toEqual({ ...definition, attempts: 2, backoff: 'fixed' })
    expect(Object.isFrozen(enqueued)).toBe(true)
  })

  test("as given at an enqueue takes the place of the definition's function", () => {
    const definition = resolveRetry({ backoff: () => 1, when: () => false }, DEFAULT_RETRY)
    const enqueued = resolveRetry({ backoff: 'linear', delay: '2s' }, definition)
    expect(enqueued.when).toBe(definition.when)
    expect(retryDelayMs(enqueued, 2, error, least)).toBe(4_000)
  })

  test.each<[string, unknown, RegExp, RegExp]>([
    ['no object', 'often', /^`retry` is "often"; it must be an object\.$/, /an object/],
    ['null', null, /^`retry` is null; it must be an object\.$/, /an object/],
    [
      'a misspelt option',
      { atempts: 3 },
      /^Unknown option `retry\.atempts`\.$/,
      /attempts, crashes, backoff, delay/,
    ],
    ['no attempts', { attempts: 0 }, /^`retry\.attempts` is 0/, /whole number from 1 to 32767/],
    ['half an attempt', { attempts: 1.5 }, /^`retry\.attempts` is 1\.5/, /whole number/],
    ['too many attempts', { attempts: 40_000 }, /^`retry\.attempts` is 40000/, /32767/],
    ['attempts as a text', { attempts: '3' }, /^`retry\.attempts` is "3"/, /whole number/],
    ['endless attempts', { attempts: Infinity }, /^`retry\.attempts` is Infinity/, /whole number/],
    ['crashes below zero', { crashes: -1 }, /^`retry\.crashes` is -1/, /whole number from 0/],
    [
      'an unknown shape',
      { backoff: 'quadratic' },
      /^`retry\.backoff` is "quadratic"/,
      /'exponential', 'linear', 'fixed' or a function/,
    ],
    ['no shape', { backoff: null }, /^`retry\.backoff` is null/, /exponential/],
    ['no delay', { delay: 0 }, /^`retry\.delay` is 0/, /milliseconds/],
    ['a delay in words', { delay: '5 minutes' }, /^`retry\.delay` is "5 minutes"/, /'5m'/],
    ['a cap of zero', { maxDelay: 0 }, /^`retry\.maxDelay` is 0/, /milliseconds/],
    ['an endless cap', { maxDelay: Infinity }, /^`retry\.maxDelay` is Infinity/, /milliseconds/],
    ['a factor below one', { factor: 0.5 }, /^`retry\.factor` is 0\.5/, /from 1 on/],
    ['an endless factor', { factor: Infinity }, /^`retry\.factor` is Infinity/, /from 1 on/],
    ['a factor that is no number', { factor: '2' }, /^`retry\.factor` is "2"/, /from 1 on/],
    ['jitter above one', { jitter: 1.1 }, /^`retry\.jitter` is 1\.1/, /from 0 to 1/],
    ['jitter below zero', { jitter: -0.1 }, /^`retry\.jitter` is -0\.1/, /from 0 to 1/],
    ['jitter that is no number', { jitter: Number.NaN }, /^`retry\.jitter` is NaN/, /from 0 to 1/],
    ['a `when` that is no function', { when: true }, /^`retry\.when` is true/, /a function/],
    ['a BigInt', { jitter: 1n }, /^`retry\.jitter` is 1n/, /from 0 to 1/],
    ['what cannot be shown', { factor: Object.create(null) }, /^`retry\.factor` is \[Object/, /from 1 on/],
  ])('is refused with %s', (_, policy, message, hint) => {
    expect(() => resolveRetry(policy as RetryPolicy, DEFAULT_RETRY)).toThrow(
      expect.objectContaining({
        code: 'HF_BAD_OPTION',
        message: expect.stringMatching(message),
        hint: expect.stringMatching(hint),
      }),
    )
  })
})

describe('the wait after a crash', () => {
  test('grows from a second to five minutes, by the count alone', () => {
    const backoff = { firstMs: 1_000, longestMs: 300_000 }
    for (const crashes of [1, 2, 3, 9, 10_000]) expect(crashDelayMs(crashes)).toBe(nthPause(backoff, crashes))
    expect([crashDelayMs(1), crashDelayMs(10_000)]).toEqual([1_000, 300_000])
  })
})
