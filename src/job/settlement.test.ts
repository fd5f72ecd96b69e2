import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  DependencyDown,
  Fatal,
  HoldfastError,
  InvalidInputError,
  ResourcesExhausted,
  RetryIn,
} from '../errors.ts'
import { seededRandom, type Random } from '../std/random.ts'
import { classify, type FailureKind } from './failure.ts'
import { DEFAULT_RETRY, resolveRetry, type RetryPolicy } from './retry.ts'
import { settlementFor, type Outcome, type Settlement } from './settlement.ts'

/** Chance that takes off as much as it may, or nothing. */
const most: Random = { float: () => 1 - 2 ** -32, uint32: () => 2 ** 32 - 1 }
const least: Random = { float: () => 0, uint32: () => 0 }

const FIRST = { attempt: 1, maxAttempts: 4 }
const LAST = { attempt: 4, maxAttempts: 4 }

const failed = (thrown: unknown, kind: FailureKind = classify(thrown)): Outcome => ({
  type: 'failed',
  thrown,
  kind,
})

function settle(outcome: Outcome, policy: RetryPolicy = {}, job = FIRST, random = least): Settlement {
  return settlementFor(job, outcome, resolveRetry(policy, DEFAULT_RETRY), random)
}

/** What matters of a settlement, in short. */
function short(settlement: Settlement): string {
  switch (settlement.type) {
    case 'retry':
      return `retry in ${settlement.delayMs} (${settlement.error.kind})`
    case 'dead':
      return `dead (${settlement.error.kind})`
    case 'snooze':
      return `snooze for ${settlement.delayMs}${settlement.error === null ? '' : ` (${settlement.error.kind})`}`
    default:
      return settlement.type
  }
}

describe('an attempt that did not fail', () => {
  test.each<[string, Outcome, Settlement]>([
    [
      'succeeded',
      { type: 'succeeded', result: '{"a":1}', resultDropped: false },
      { type: 'completed', result: '{"a":1}', resultDropped: false },
    ],
    [
      'succeeded with a result too large to keep',
      { type: 'succeeded', result: null, resultDropped: true },
      { type: 'completed', result: null, resultDropped: true },
    ],
    // Snooze and release hand the attempt back; the type says so to the store.
    ['was snoozed', { type: 'snoozed', delayMs: 5_000 }, { type: 'snooze', delayMs: 5_000, error: null }],
    ['was interrupted', { type: 'interrupted' }, { type: 'release' }],
    ['has committed', { type: 'committed', result: '1', resultDropped: false }, { type: 'confirm' }],
    ['was cancelled', { type: 'cancelled', reason: 'why' }, { type: 'cancelled', reason: 'why' }],
    [
      'was cancelled without a reason',
      { type: 'cancelled', reason: null },
      { type: 'cancelled', reason: null },
    ],
  ])('%s: the same at the first attempt and at the last, whatever the policy', (_, outcome, settlement) => {
    const refusing: RetryPolicy = { when: () => false, attempts: 1 }
    for (const job of [FIRST, LAST]) {
      expect(settle(outcome, {}, job)).toEqual(settlement)
      expect(settle(outcome, refusing, job, most)).toEqual(settlement)
    }
  })
})

const invalid = new InvalidInputError('mail', [])
const timeout = new HoldfastError('HF_ATTEMPT_TIMEOUT', 'Too long.')
const whenFalse: RetryPolicy = { when: () => false }
const whenThrows: RetryPolicy = { when: () => expect.fail('bug in when') }
const backoffThrows: RetryPolicy = { backoff: () => expect.fail('bug in backoff') }
const backoffNonsense: RetryPolicy = { backoff: () => 'soon' as '1s' }

describe('an attempt that failed', () => {
  test.each<[string, unknown, RetryPolicy, first: string, last: string]>([
    ['an error', new Error('x'), {}, 'retry in 1000 (transient)', 'dead (transient)'],
    ['a text', 'x', {}, 'retry in 1000 (transient)', 'dead (transient)'],
    ['nothing', undefined, {}, 'retry in 1000 (transient)', 'dead (transient)'],
    ['a timeout', timeout, {}, 'retry in 1000 (timeout)', 'dead (timeout)'],
    ['Fatal', new Fatal('x'), {}, 'dead (permanent)', 'dead (permanent)'],
    [
      'Fatal where `when` says yes',
      new Fatal('x'),
      { when: () => true },
      'dead (permanent)',
      'dead (permanent)',
    ],
    ['an invalid input', invalid, {}, 'dead (permanent)', 'dead (permanent)'],
    [
      'what `when` accepts',
      new Error('x'),
      { when: () => true },
      'retry in 1000 (transient)',
      'dead (transient)',
    ],
    ['what `when` refuses', new Error('x'), whenFalse, 'dead (permanent)', 'dead (permanent)'],
    ['a timeout that `when` refuses', timeout, whenFalse, 'dead (permanent)', 'dead (permanent)'],
    ['nothing, which `when` refuses', undefined, whenFalse, 'dead (permanent)', 'dead (permanent)'],
    ['what `when` throws at', new Error('x'), whenThrows, 'dead (permanent)', 'dead (permanent)'],
    [
      'what the backoff throws at',
      new Error('x'),
      backoffThrows,
      'retry in 300000 (transient)',
      'dead (transient)',
    ],
    [
      'what gets a backoff of nonsense',
      new Error('x'),
      backoffNonsense,
      'retry in 300000 (transient)',
      'dead (transient)',
    ],
    ['RetryIn', new RetryIn('7m'), {}, 'retry in 420000 (transient)', 'dead (transient)'],
    ['RetryIn at once', new RetryIn(0), {}, 'retry in 0 (transient)', 'dead (transient)'],
    ['RetryIn that `when` refuses', new RetryIn('7m'), whenFalse, 'dead (permanent)', 'dead (permanent)'],
    [
      'a dependency down',
      new DependencyDown('S'),
      {},
      'snooze for 30000 (dependency_down)',
      'snooze for 30000 (dependency_down)',
    ],
    [
      'a dependency down for a time',
      new DependencyDown('S', { retryAfter: '2m' }),
      {},
      'snooze for 120000 (dependency_down)',
      'snooze for 120000 (dependency_down)',
    ],
    [
      'a dependency down, which `when` is not asked about',
      new DependencyDown('S'),
      whenFalse,
      'snooze for 30000 (dependency_down)',
      'snooze for 30000 (dependency_down)',
    ],
    [
      'resources',
      new ResourcesExhausted('x'),
      {},
      'retry in 15000 (resources_exhausted)',
      'dead (resources_exhausted)',
    ],
    [
      'resources with a long backoff',
      new ResourcesExhausted('x'),
      { delay: '1m' },
      'retry in 60000 (resources_exhausted)',
      'dead (resources_exhausted)',
    ],
    [
      'resources that `when` refuses',
      new ResourcesExhausted('x'),
      whenFalse,
      'dead (permanent)',
      'dead (permanent)',
    ],
  ])('by %s', (_, thrown, policy, first, last) => {
    expect(short(settle(failed(thrown), policy, FIRST))).toBe(first)
    expect(short(settle(failed(thrown), policy, LAST))).toBe(last)
  })

  test.each([
    [1, 1, 'dead'],
    [1, 2, 'retry'],
    [2, 2, 'dead'],
    [3, 2, 'dead'],
    [32_766, 32_767, 'retry'],
    [32_767, 32_767, 'dead'],
  ])('as attempt %d of %d is %s', (attempt, maxAttempts, type) => {
    expect(settle(failed(new Error('x')), {}, { attempt, maxAttempts }).type).toBe(type)
  })

  test('keeps its error, with the attempt it failed in', () => {
    const settlement = settle(failed(new Error('x')), {}, { attempt: 2, maxAttempts: 4 })
    expect(settlement).toMatchObject({ type: 'retry', delayMs: 2_000, error: { message: 'x', attempt: 2 } })
    const parked = settle(failed(new DependencyDown('Stripe')))
    expect(parked).toMatchObject({ type: 'snooze', error: { message: 'Stripe is down.', attempt: 1 } })
  })

  test('keeps the error of `when`, where that throws: it is the bug to mend', () => {
    const policy: RetryPolicy = { when: () => expect.fail('bug in when') }
    expect(settle(failed(new Error('x')), policy)).toMatchObject({ error: { message: 'bug in when' } })
  })

  test('is dead also where `when` throws nothing at all', () => {
    const policy: RetryPolicy = {
      when: () => {
        // oxlint-disable-next-line typescript/only-throw-error -- what others' code may do
        throw undefined
      },
    }
    expect(short(settle(failed(new Error('x')), policy))).toBe('dead (permanent)')
  })

  test('asks `when` with an Error and the attempt, whatever was thrown', () => {
    const asked: unknown[] = []
    const when: RetryPolicy['when'] = (...args) => (asked.push(args), true)
    settle(failed('boom'), { when }, { attempt: 3, maxAttempts: 4 })
    expect(asked).toEqual([[expect.objectContaining({ message: 'boom', cause: 'boom' }), 3]])
  })
})

describe('the jitter of a settlement', () => {
  test.each<[string, unknown, RetryPolicy, low: number, high: number]>([
    ['a retry', new Error('x'), {}, 500, 1_000],
    ['a retry whose backoff throws', new Error('x'), backoffThrows, 150_000, 300_000],
    ['a parked job', new DependencyDown('S'), {}, 45_000, 30_000],
    ['a lack of resources', new ResourcesExhausted('x'), {}, 7_500, 15_000],
    ['a lack of resources without jitter', new ResourcesExhausted('x'), { jitter: false }, 15_000, 15_000],
    ['RetryIn, which asked for a time and gets it', new RetryIn('1m'), {}, 60_000, 60_000],
  ])('of %s', (_, thrown, policy, low, high) => {
    const delayOf = (random: Random): unknown => {
      const settlement = settle(failed(thrown), policy, FIRST, random)
      return 'delayMs' in settlement ? settlement.delayMs : undefined
    }
    expect([delayOf(most), delayOf(least)]).toEqual([low, high])
  })
})

describe('a settlement', () => {
  const throwing = (): never => expect.fail('gotcha')
  const hostile = fc.constantFrom<() => unknown>(
    () => new Proxy({}, { get: throwing, getPrototypeOf: throwing, has: throwing, ownKeys: throwing }),
    () => new Proxy(new RetryIn('5m'), { get: throwing }),
    () => new Proxy(new DependencyDown('x'), { get: throwing }),
    () => Object.defineProperty(new RetryIn('5m'), 'delay', { get: throwing }),
    () => Object.defineProperty(new Error('x'), 'message', { get: throwing }),
    () => ({ toString: throwing, [Symbol.toPrimitive]: throwing, get stack() { return throwing() } }), // prettier-ignore
    () => {
      const { proxy, revoke } = Proxy.revocable(throwing, {})
      revoke()
      return proxy
    },
  )
  // As functions: fast-check itself looks at the values it makes.
  const anything = fc.oneof(
    fc
      .anything({ withBigInt: true, withNullPrototype: true, withMap: true, withDate: true })
      .map((value) => () => value),
    hostile,
  )
  const kinds = fc.constantFrom<FailureKind>(
    'transient',
    'permanent',
    'dependency_down',
    'resources_exhausted',
    'timeout',
    'cancelled',
    'lease_lost',
    'worker_lost',
  )
  const policies = fc.constantFrom<RetryPolicy>({}, whenFalse, whenThrows, backoffThrows, backoffNonsense, {
    when: (error) => error.message === '',
    backoff: (_, error) => error.message.length,
  })

  test('is made for whatever was thrown, and can be stored', () => {
    const jobs = fc.record({
      attempt: fc.integer({ min: 1, max: 5 }),
      maxAttempts: fc.integer({ min: 1, max: 5 }),
    })
    fc.assert(
      fc.property(
        anything,
        fc.option(kinds),
        policies,
        jobs,
        fc.integer(),
        (make, kind, policy, job, seed) => {
          const thrown = make()
          const outcome = failed(thrown, kind ?? classify(thrown))
          const settlement = settle(outcome, policy, job, seededRandom(seed))
          expect(['retry', 'dead', 'snooze']).toContain(settlement.type)
          expect(JSON.parse(JSON.stringify(settlement))).toEqual(settlement)
          if ('delayMs' in settlement) expect(settlement.delayMs).toBeGreaterThanOrEqual(0)
          if (settlement.type === 'retry') expect(job.attempt).toBeLessThan(job.maxAttempts)
        },
      ),
      { numRuns: 500 },
    )
  })

  test('is a function of what it is given alone', () => {
    const make = (): Settlement => settle(failed('x'), {}, FIRST, seededRandom(7))
    expect(make()).toEqual(make())
  })
})
