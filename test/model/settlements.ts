/** Random outcomes of attempts. */
import fc from 'fast-check'
import type { AttemptError } from '../../src/job/failure.ts'
import type { Settlement } from '../../src/job/settlement.ts'
import { lastsMs } from './command.ts'

const error: fc.Arbitrary<AttemptError> = fc.record({
  kind: fc.constantFrom('transient', 'permanent', 'timeout'),
  name: fc.constant('Error'),
  message: fc.string({ maxLength: 5 }),
  code: fc.constantFrom(null, 'ECODE'),
  stack: fc.constant(null),
  fingerprint: fc.constant('f'),
  attempt: fc.integer({ min: 1, max: 3 }),
})

const reason = fc.constantFrom(null, 'done with it')

export const settlement: fc.Arbitrary<Settlement> = fc.oneof(
  fc.record({
    type: fc.constant('completed' as const),
    result: fc.option(fc.json({ maxDepth: 1 })),
    resultDropped: fc.boolean(),
  }),
  fc.record({ type: fc.constant('retry' as const), delayMs: lastsMs, error }),
  fc.record({ type: fc.constant('dead' as const), error }),
  fc.record({ type: fc.constant('snooze' as const), delayMs: lastsMs, error: fc.option(error) }),
  fc.record({ type: fc.constantFrom('release' as const, 'confirm' as const) }),
  fc.record({ type: fc.constant('cancelled' as const), reason }),
)

/** What is kept of an attempt, but for its worker, and how many of them are. */
export const attemptRecord = fc.record({
  attempt: fc.integer({ min: 1, max: 3 }),
  startedAt: fc.integer({ min: 1, max: 2_000_000_000_000 }),
  durationMs: fc.nat({ max: 500 }),
  outcome: fc.constantFrom('failed' as const, 'parked' as const, 'cancelled' as const),
  error: fc.option(error.map(({ stack: _stack, attempt: _attempt, ...recorded }) => recorded)),
  keepRecords: fc.constantFrom(100, 100, 100, 2, 1, 0),
})
