/** What a worker offers to take as it is enqueued, by tables. */
import { describe, expect, test } from 'vitest'
import { dry, POLL_MS, state, work } from '../../test/support/planning.ts'
import {
  callBegun,
  handedOver,
  offerAnswered,
  plan,
  type LoopState,
  type PlannedOffer,
  type Work,
} from './plan.ts'

interface Row {
  readonly name: string
  readonly state: LoopState
  readonly work: Work
  readonly offer: PlannedOffer | undefined
}

const OFFER = { jobs: 5, queues: ['default'], forMs: 1.5 * POLL_MS }
const WITHDRAWAL = { jobs: 0, queues: [], forMs: 0 }

const ROWS: readonly Row[] = [
  {
    name: 'with a claim, the slots that it may leave free',
    state: state({ perMs: 2 }),
    work: work({ freeSlots: 5, inLine: 2 }),
    offer: { ...OFFER, jobs: 3 },
  },
  {
    name: 'a few of many slots',
    state: state(),
    work: work({ freeSlots: 1_000 }),
    offer: { ...OFFER, jobs: 16 },
  },
  {
    name: 'nothing while another queue may have jobs',
    state: state({}, { mail: 1, default: 1 }),
    work: work(),
    offer: { ...OFFER, jobs: 0, queues: ['mail', 'default'] },
  },
  {
    name: 'nothing if jobs that are handed over might start out of order',
    state: state(),
    work: work({ takesOffers: false }),
    offer: { ...OFFER, jobs: 0 },
  },
  { name: 'nothing in a call of its own', state: dry({ offers: true }), work: work(), offer: undefined },
  {
    name: 'nothing any more when it stops',
    state: dry({ offers: true }),
    work: work({ claims: false }),
    offer: WITHDRAWAL,
  },
  {
    name: 'nothing any more during the pause after a job ran out of resources',
    state: dry({ offers: true, noClaimsUntilMs: 300 }),
    work: work(),
    offer: WITHDRAWAL,
  },
]

describe('a worker offers', () => {
  test.each(ROWS)('$name', ({ state: given, work: hand, offer }) => {
    expect(plan(given, hand, 10).call?.offer).toEqual(offer)
  })

  test('for ten seconds at most, however seldom it polls', () => {
    const offer = plan(state({ pollMs: 3_600_000 }), work(), 10).call?.offer
    expect(offer?.forMs).toBe(10_000)
  })
})

describe('an offer', () => {
  test('is withdrawn unless the store has answered that it is not open', () => {
    const given = state()
    const { call } = plan(given, work(), 10)
    if (call === null) throw new Error('no call')
    callBegun(given, call, 10, () => 0.5)
    expect(given.offers).toBe(true)
    offerAnswered(given, 0)
    expect(given.offers).toBe(false)
  })

  test('is made again once all its jobs have come', () => {
    const given = dry()
    offerAnswered(given, 2)
    handedOver(given, 1)
    expect(plan(given, work(), 10).call).toBeNull()
    handedOver(given, 1)
    expect(plan(given, work(), 10).call?.offer).toEqual(OFFER)
  })
})
