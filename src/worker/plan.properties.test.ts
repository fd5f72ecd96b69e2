/** What holds of every plan, whatever the state, the work and the time. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { claimOf, state, work } from '../../test/support/planning.ts'
import {
  callAnswered,
  callBegun,
  callEnded,
  callFailed,
  callSucceeded,
  claimAnswered,
  RELEASE_AFTER_MS,
  plan,
  wokenUp,
  type LoopState,
  type PlannedCall,
  type Work,
} from './plan.ts'

const half = (): number => 0.5

const anyState: fc.Arbitrary<LoopState> = fc
  .record({
    batchSize: fc.integer({ min: 1, max: 1_000 }),
    served: fc.array(
      fc.record({ served: fc.nat(100), dry: fc.boolean(), weight: fc.integer({ min: 1, max: 9 }) }),
      {
        minLength: 1,
        maxLength: 4,
      },
    ),
    level: fc.nat(100),
    finished: fc.nat(1_000),
    perMs: fc.double({ min: 0, max: 100, noNaN: true }),
    nextPollMs: fc.nat(2_000),
    noClaimsUntilMs: fc.nat(2_000),
    retryAtMs: fc.nat(2_000),
    calls: fc.nat(2),
    isClaiming: fc.boolean(),
    offers: fc.boolean(),
  })
  .map(({ served: queues, ...given }) => ({
    ...state(given),
    queues: queues.map((one, n) => ({ name: `q${n}`, wakeUps: 0, ...one })),
  }))

/** Rooms of any of the queues `q0` to `q3`. */
const anyBatchRoom: fc.Arbitrary<Work['batchRoom']> = fc
  .array(fc.option(fc.record({ perSlot: fc.nat(100), gathered: fc.nat(500) })), { maxLength: 4 })
  .map((rooms) => new Map(rooms.flatMap((room, n) => (room === null ? [] : [[`q${n}`, room] as const]))))

const anyWork: fc.Arbitrary<Work> = fc.record({
  claims: fc.boolean(),
  freeSlots: fc.nat(500),
  inLine: fc.nat(500),
  oldestMs: fc.option(fc.nat(2_000), { nil: undefined }),
  batchRoom: anyBatchRoom,
  batchReadyMs: fc.array(fc.oneof(fc.nat(3_000), fc.constant(Infinity)), { maxLength: 3 }),
  holdsSuspect: fc.boolean(),
  settles: fc.nat(2_000),
  reportsDue: fc.boolean(),
  takesOffers: fc.boolean(),
})

const anySituation = fc.tuple(anyState, anyWork, fc.nat(2_000))

describe('whatever the situation', () => {
  test('a plan does one thing: give back, call, or wait for a time to come', () => {
    fc.assert(
      fc.property(anySituation, ([given, hand, nowMs]) => {
        const { giveBackMs, call, wakeAtMs } = plan(given, hand, nowMs)
        expect(giveBackMs !== null && call !== null).toBe(false)
        if (giveBackMs === null && call === null) expect(wakeAtMs).toBeGreaterThan(nowMs)
        // A wait without an end is only for the end of a call that is under way.
        if (wakeAtMs === Infinity && call === null) expect(given.calls).toBeGreaterThan(0)
      }),
    )
  })

  test('a claim is for free slots and what finishes soon, from a queue that may have work, within the batch size', () => {
    fc.assert(
      fc.property(anySituation, ([given, hand, nowMs]) => {
        const claim = claimOf(plan(given, hand, nowMs))
        if (claim === null) return
        const rate = Math.max(given.perMs, given.finished / 50)
        expect(claim.limit).toBeGreaterThan(0)
        expect(claim.limit).toBeLessThanOrEqual(given.batchSize)
        const ahead = Math.floor(rate * 50) + 1
        const { perSlot, gathered } = hand.batchRoom.get(claim.queue) ?? { perSlot: 0, gathered: 0 }
        const plain = hand.freeSlots + ahead - hand.inLine
        const batched = perSlot === 0 ? 0 : hand.freeSlots * perSlot + ahead - gathered
        expect(claim.limit).toBeLessThanOrEqual(Math.max(plain, batched))
        expect(hand.claims && !given.isClaiming && nowMs >= given.noClaimsUntilMs).toBe(true)
        const queue = given.queues.find(({ name }) => name === claim.queue)
        expect(queue?.dry === false || nowMs >= given.nextPollMs).toBe(true)
      }),
    )
  })

  test('nothing is called before the pause after a failure is over, and never three times at once', () => {
    fc.assert(
      fc.property(anySituation, ([given, hand, nowMs]) => {
        const { call } = plan(given, hand, nowMs)
        if (call === null) return
        expect(nowMs).toBeGreaterThanOrEqual(given.retryAtMs)
        expect(given.calls).toBeLessThan(2)
      }),
    )
  })

  test('a batch that becomes ready waits neither for a call under way nor for a pause', () => {
    fc.assert(
      fc.property(anySituation, ([given, hand, nowMs]) => {
        const { giveBackMs, call, wakeAtMs } = plan(given, hand, nowMs)
        if (giveBackMs !== null || call !== null) return
        for (const readyMs of hand.batchReadyMs)
          if (readyMs > nowMs) expect(wakeAtMs).toBeLessThanOrEqual(readyMs)
      }),
    )
  })

  test('nothing waits for more than a poll, a pause and 200 ms, unless it waits for the end of a call', () => {
    fc.assert(
      fc.property(anySituation, ([given, hand, nowMs]) => {
        const { giveBackMs, call, wakeAtMs } = plan(given, hand, nowMs)
        if (giveBackMs !== null || call !== null) return
        if (given.calls > 0 && nowMs >= given.retryAtMs) return
        expect(wakeAtMs).toBeLessThanOrEqual(Math.max(given.nextPollMs, given.retryAtMs))
        if (hand.oldestMs !== undefined && nowMs >= given.retryAtMs)
          expect(wakeAtMs).toBeLessThanOrEqual(hand.oldestMs + RELEASE_AFTER_MS)
        if (nowMs >= given.retryAtMs) expect(hand.settles).toBe(0)
      }),
    )
  })

  test('queues that never run dry are served by their weights', () => {
    const weights = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 4 })
    fc.assert(
      fc.property(weights, (list) => {
        const given = state({}, Object.fromEntries(list.map((weight, n) => [`q${n}`, weight])))
        const taken = new Map<string, number>()
        for (let round = 0; round < 400; round++) {
          const { call } = plan(given, work(), 10)
          const request = call?.claim?.request
          if (call?.claim === null || call === null || request === undefined) throw new Error('no claim')
          taken.set(request.queue, (taken.get(request.queue) ?? 0) + request.limit)
          claimAnswered(given, call.claim, request.limit)
        }
        const total = list.reduce((sum, weight) => sum + weight, 0)
        list.forEach((weight, n) =>
          expect(Math.abs((taken.get(`q${n}`) ?? 0) / 2_000 - weight / total)).toBeLessThan(0.03),
        )
      }),
      { numRuns: 20 },
    )
  })

  test('a run of events leaves no call open, and ends with work being claimed again', () => {
    const events = fc.array(fc.constantFrom('answered', 'empty', 'failed', 'wake-up'), { maxLength: 40 })
    fc.assert(
      fc.property(events, (list) => {
        const given = state()
        let nowMs = 0
        for (const event of list) {
          if (event === 'wake-up') wokenUp(given, 'default')
          nowMs = turn(given, event, nowMs)
        }
        expect(given.calls).toBe(0)
        expect(given.isClaiming).toBe(false)
        // Without any wake-up, the next poll claims.
        const { call } = plan(given, work(), Math.max(given.nextPollMs, given.retryAtMs))
        expect(call?.claim).not.toBeNull()
      }),
    )
  })
})

/** Does what the plan says, with this as what comes of a call; returns the time afterwards. */
function turn(given: LoopState, event: string, nowMs: number): number {
  const { call, wakeAtMs } = plan(given, work({ settles: 1 }), nowMs)
  if (call === null) return wakeAtMs
  carryOut(given, call, event, nowMs)
  return nowMs + 10
}

function carryOut(given: LoopState, call: PlannedCall, event: string, nowMs: number): void {
  callBegun(given, call, nowMs, half)
  if (event === 'failed') callFailed(given, nowMs, false, half)
  else {
    callAnswered(given, nowMs + 5)
    if (call.claim !== null)
      claimAnswered(given, call.claim, event === 'empty' ? 0 : call.claim.request.limit)
    callSucceeded(given)
  }
  callEnded(given, call.claim)
}
