/** The planner by tables: no store, no clock, no worker. `plan.properties.test.ts` holds what is true of any state. */
import { describe, expect, test } from 'vitest'
import { claimOf, dry, POLL_MS, state, work } from '../../test/support/planning.ts'
import {
  callBegun,
  callEnded,
  callFailed,
  callSucceeded,
  claimAnswered,
  lookEverywhere,
  plan,
  wokenUp,
  type LoopState,
  type Plan,
  type Work,
} from './plan.ts'

const half = (): number => 0.5

interface Row {
  readonly name: string
  readonly state: LoopState
  readonly work: Work
  readonly nowMs?: number
  readonly expected: Partial<Plan> | { readonly claim: object | null }
}

const IDLE = { call: null, giveBackMs: null }
const BARE_CALL = { call: { claim: null, offer: null, polls: false }, giveBackMs: null }

const ROWS: readonly Row[] = [
  // ── claims ─────────────────────────────────────────────────────────────────
  {
    name: 'claims as many as there are free slots',
    state: state(),
    work: work({ freeSlots: 5 }),
    expected: { claim: { queue: 'default', limit: 5, suspects: true } },
  },
  {
    name: 'claims nothing while all slots are taken and nothing finishes',
    state: state(),
    work: work({ freeSlots: 0 }),
    expected: { ...IDLE, wakeAtMs: POLL_MS },
  },
  {
    name: 'claims ahead what it finishes in 50 ms, even if all slots are taken',
    state: state({ perMs: 2 }),
    work: work({ freeSlots: 0 }),
    expected: { claim: { queue: 'default', limit: 100, suspects: true } },
  },
  {
    name: 'refills at half, not for each job that finishes',
    state: state({ perMs: 2 }),
    work: work({ freeSlots: 0, inLine: 51 }),
    expected: { ...IDLE },
  },
  {
    name: 'refills once half of what it claimed ahead has started',
    state: state({ perMs: 2 }),
    work: work({ freeSlots: 0, inLine: 50 }),
    expected: { claim: { queue: 'default', limit: 50, suspects: true } },
  },
  {
    name: 'claims no more than the batch size',
    state: state({ batchSize: 10 }),
    work: work({ freeSlots: 100 }),
    expected: { claim: { queue: 'default', limit: 10, suspects: true } },
  },
  {
    name: 'claims no second suspect while it holds one',
    state: state(),
    work: work({ holdsSuspect: true }),
    expected: { claim: { queue: 'default', limit: 5, suspects: false } },
  },
  {
    name: 'claims nothing from a dry queue',
    state: dry(),
    work: work(),
    expected: { ...IDLE, wakeAtMs: POLL_MS },
  },
  {
    name: 'claims nothing while a claim is under way',
    state: state({ calls: 1, isClaiming: true }),
    work: work({ freeSlots: 1_000 }),
    expected: { ...IDLE, wakeAtMs: Infinity },
  },
  {
    name: 'claims nothing while it stops, and settles what it has',
    state: state(),
    work: work({ claims: false, settles: 3 }),
    expected: BARE_CALL,
  },
  {
    name: 'claims nothing during the pause after a job ran out of resources, and wakes up at its end',
    state: state({ noClaimsUntilMs: 300 }),
    work: work(),
    expected: { ...IDLE, wakeAtMs: 300 },
  },
  {
    name: 'claims again once that pause is over',
    state: state({ noClaimsUntilMs: 300 }),
    work: work(),
    nowMs: 300,
    expected: { claim: { queue: 'default', limit: 5, suspects: true } },
  },
  {
    name: 'claims from the queue that was served least for its weight',
    state: served({ mail: 10, default: 3 }),
    work: work(),
    expected: { claim: { queue: 'default', limit: 5, suspects: true } },
  },
  {
    name: 'claims whole batches for the free slots',
    state: state(),
    work: work({ freeSlots: 2, batchRoom: new Map([['default', { perSlot: 10, gathered: 0 }]]) }),
    expected: { claim: { queue: 'default', limit: 20, suspects: true } },
  },
  {
    name: 'claims nothing for batches that are gathered already',
    state: state(),
    work: work({
      freeSlots: 1,
      inLine: 5,
      batchRoom: new Map([['default', { perSlot: 10, gathered: 11 }]]),
    }),
    expected: { ...IDLE },
  },
  // ── polls ──────────────────────────────────────────────────────────────────
  {
    name: 'polls every queue when the time comes, whatever it answered before',
    state: dry(),
    work: work(),
    nowMs: POLL_MS,
    expected: {
      call: {
        claim: { request: expect.any(Object), wakeUpsBefore: 0 },
        offer: expect.any(Object),
        polls: true,
      },
    },
  },
  {
    name: 'calls the store at a poll even if there is no room: to see that it is there',
    state: state(),
    work: work({ freeSlots: 0 }),
    nowMs: POLL_MS,
    expected: { call: { claim: null, offer: null, polls: true } },
  },
  // ── settles and reports ────────────────────────────────────────────────────
  {
    name: 'settles at once what has finished',
    state: dry(),
    work: work({ settles: 1 }),
    expected: BARE_CALL,
  },
  {
    name: 'sends reports that have waited long enough',
    state: dry(),
    work: work({ reportsDue: true }),
    expected: BARE_CALL,
  },
  {
    name: 'lets what finishes during a call travel with the next one',
    state: dry({ calls: 1 }),
    work: work({ settles: 255 }),
    expected: { ...IDLE, wakeAtMs: Infinity },
  },
  {
    name: 'makes a second call if there is much to settle',
    state: dry({ calls: 1 }),
    work: work({ settles: 256 }),
    expected: BARE_CALL,
  },
  {
    name: 'makes a second call if there is much to claim',
    state: state({ calls: 1 }),
    work: work({ freeSlots: 256 }),
    expected: { claim: { queue: 'default', limit: 256, suspects: true } },
  },
  {
    name: 'makes no third call',
    state: dry({ calls: 2 }),
    work: work({ settles: 1_000 }),
    expected: { ...IDLE, wakeAtMs: Infinity },
  },
  // ── give back ──────────────────────────────────────────────────────────────
  {
    name: 'gives back what has waited 200 ms for a slot',
    state: dry(),
    work: work({ freeSlots: 0, inLine: 1, oldestMs: 100 }),
    nowMs: 300,
    expected: { giveBackMs: 100, call: null },
  },
  {
    name: 'wakes up when a job will have waited too long',
    state: dry(),
    work: work({ freeSlots: 0, inLine: 1, oldestMs: 100 }),
    nowMs: 299,
    expected: { ...IDLE, wakeAtMs: 300 },
  },
  {
    name: 'gives back a batch that could have started 200 ms ago',
    state: dry(),
    work: work({ batchReadyMs: [Infinity, 50] }),
    nowMs: 250,
    expected: { giveBackMs: 50, call: null },
  },
  {
    name: 'wakes up when a batch is ready',
    state: dry(),
    work: work({ batchReadyMs: [700] }),
    expected: { ...IDLE, wakeAtMs: 700 },
  },
  {
    name: 'wakes up when a batch that is ready will have waited too long',
    state: dry(),
    work: work({ batchReadyMs: [90] }),
    nowMs: 100,
    expected: { ...IDLE, wakeAtMs: 290 },
  },
  {
    name: 'wakes up when a batch is ready, although a call is under way',
    state: dry({ calls: 1 }),
    work: work({ batchReadyMs: [5, 900, 700, Infinity] }),
    expected: { ...IDLE, wakeAtMs: 700 },
  },
  {
    name: 'gives nothing back during a call: its answer may make room',
    state: dry({ calls: 1 }),
    work: work({ freeSlots: 0, inLine: 1, oldestMs: 0 }),
    nowMs: 900,
    expected: { ...IDLE, wakeAtMs: Infinity },
  },
  // ── backoff ────────────────────────────────────────────────────────────────
  {
    name: 'does nothing before the pause after a failure is over, whatever there is to do',
    state: state({ retryAtMs: 400 }),
    work: work({ settles: 1_000, reportsDue: true, oldestMs: 0, inLine: 1 }),
    nowMs: 399,
    expected: { ...IDLE, wakeAtMs: 400 },
  },
  {
    name: 'wakes up when a batch is ready, although a pause after a failure is not over',
    state: state({ retryAtMs: 400 }),
    work: work({ batchReadyMs: [5, 300] }),
    expected: { ...IDLE, wakeAtMs: 300 },
  },
  {
    name: 'wakes up at the end of that pause if the batch is ready later',
    state: state({ retryAtMs: 400 }),
    work: work({ batchReadyMs: [500] }),
    expected: { ...IDLE, wakeAtMs: 400 },
  },
  {
    name: 'tries again when that pause is over',
    state: dry({ retryAtMs: 400 }),
    work: work({ settles: 1 }),
    nowMs: 400,
    expected: BARE_CALL,
  },
]

/** Two queues of weight 1 that were served so often. */
function served(counts: Record<string, number>): LoopState {
  const made = state({}, Object.fromEntries(Object.keys(counts).map((name) => [name, 1])))
  for (const queue of made.queues) queue.served = counts[queue.name] ?? 0
  return made
}

describe('the plan of a worker', () => {
  test.each(ROWS)('$name', ({ state: given, work: hand, nowMs = 10, expected }) => {
    const planned = plan(given, hand, nowMs)
    if ('claim' in expected) expect(claimOf(planned)).toEqual(expected.claim)
    else expect(planned).toMatchObject(expected)
  })

  test('is the same each time for the same state, work and time, and changes neither', () => {
    const given = state({ perMs: 1, finished: 7 }, { mail: 2, default: 1 })
    const before = structuredClone(given)
    const hand = work({ settles: 3 })
    expect(plan(given, hand, 500)).toEqual(plan(given, hand, 500))
    expect(given).toEqual(before)
  })
})

describe('a queue', () => {
  const claim = (limit: number, wakeUpsBefore = 0) => ({
    request: { queue: 'default', limit, suspects: true },
    wakeUpsBefore,
  })

  test('that answers with less than was asked for is dry until a wake-up', () => {
    const given = state()
    claimAnswered(given, claim(5), 4)
    expect(plan(given, work(), 10).call).toBeNull()
    expect(wokenUp(given, 'default')).toBe(true)
    expect(claimOf(plan(given, work(), 10))).not.toBeNull()
  })

  test('that answers with all that was asked for is asked again', () => {
    const given = state()
    claimAnswered(given, claim(5), 5)
    expect(claimOf(plan(given, work(), 10))).not.toBeNull()
  })

  test('is not taken for dry if a wake-up came after the question was sent', () => {
    const given = state()
    const asked = claim(5, given.queues[0]?.wakeUps)
    wokenUp(given, 'default')
    claimAnswered(given, asked, 0)
    expect(claimOf(plan(given, work(), 10))).not.toBeNull()
  })

  test('that this worker does not read wakes nobody up', () => {
    expect(wokenUp(state(), 'other')).toBe(false)
  })

  test('that was empty has no credit when it comes back', () => {
    const given = state({}, { mail: 1, default: 1 })
    claimAnswered(given, { request: { queue: 'mail', limit: 5, suspects: true }, wakeUpsBefore: 0 }, 0)
    for (let round = 0; round < 10; round++) claimAnswered(given, claim(5), 5)
    wokenUp(given, 'mail')
    claimAnswered(given, { request: { queue: 'mail', limit: 10, suspects: true }, wakeUpsBefore: 1 }, 10)
    expect(claimOf(plan(given, work(), 10))?.queue).toBe('default')
  })
})

describe('after a call that failed', () => {
  /** Begins a call at this time and fails; returns the pause from then on. */
  function fail(given: LoopState, beganMs: number, lasts = false): number {
    callBegun(given, { claim: null, offer: null, polls: false }, beganMs, half)
    callFailed(given, beganMs, lasts, () => 0)
    callEnded(given, null)
    return given.retryAtMs - beganMs
  }

  test('the pauses double up to two seconds, and are short again after a success', () => {
    const given = state()
    const pauses = [0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000].map((ms) => fail(given, ms))
    expect(pauses).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000])
    callSucceeded(given)
    expect(fail(given, 80_000)).toBe(50)
  })

  test('they grow to ten seconds if trying again soon cannot help', () => {
    const given = state()
    const pauses = Array.from({ length: 10 }, (_, n) => fail(given, n * 20_000, true))
    expect(pauses.at(-1)).toBe(10_000)
  })

  test('a call that hung until its deadline was pause enough', () => {
    const given = state()
    fail(given, 0)
    expect(plan(given, work({ settles: 1 }), 3_000).call).not.toBeNull()
  })
})

test('a poll comes after the interval, give or take a tenth', () => {
  for (const [chance, expected] of [
    [0, 900],
    [0.5, 1_000],
    [0.999, 1_099.8],
  ] as const) {
    const given = state({ nextPollMs: 0 })
    callBegun(given, { claim: null, offer: null, polls: true }, 0, () => chance)
    expect(given.nextPollMs).toBeCloseTo(expected, 3)
  }
})

test('looking everywhere revives every queue', () => {
  const given = dry({}, { mail: 1, default: 1 })
  lookEverywhere(given)
  expect(given.queues.every((queue) => !queue.dry)).toBe(true)
})
