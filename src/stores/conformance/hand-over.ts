/**
 * Hand-over of new jobs to workers that offered to take them. A store need not do it: these tests then check that offers
 * change nothing. Whether it does shows in its first answer to an offer.
 */
import assert from 'node:assert/strict'
import type { JobId, Token, WorkerId } from '../../job/ids.ts'
import type { CycleAnswer, Lease, Offer, WakeUp } from '../store.ts'
import type { Tests, Topic } from './suite.ts'
import {
  cancelOne,
  COMPLETED,
  heldIn,
  idsOf,
  LEASE_MS,
  MINUTE_MS,
  newFlushId,
  newJob,
  newJobs,
  QUEUE,
  settleRequest,
  uniqueWhile,
  type Harness,
} from './support.ts'

type Leased = Extract<WakeUp, { readonly type: 'leased' }>

interface Idle {
  readonly worker: WorkerId
  readonly heard: readonly Leased[]
  /** Claims from an empty queue and offers. */
  offer(parts?: Partial<Offer>): Promise<CycleAnswer>
  withdraw(received: readonly Token[]): Promise<void>
  /** The first lease that is handed over to it. */
  handed(): Promise<Lease>
}

/** A worker that listens, and has made an offer. */
async function idle(harness: Harness, parts: Partial<Offer> = {}): Promise<Idle | null> {
  const worker = await harness.worker()
  const heard: Leased[] = []
  await harness.store.subscribe((hint) => {
    if (hint.type === 'leased' && hint.worker === worker) heard.push(hint)
  })
  let nth = 0
  const cycle = (offer: Partial<Offer>, claims: boolean): Promise<CycleAnswer> =>
    harness.store.cycle({
      worker,
      settle: [],
      claim: claims ? { queue: QUEUE, limit: 10, suspects: false } : null,
      offer: { nth: ++nth, jobs: 5, queues: [QUEUE], forMs: MINUTE_MS, received: [], ...offer },
    })
  const one: Idle = {
    worker,
    heard,
    offer: (more = {}) => cycle(more, true),
    withdraw: async (received) => void (await cycle({ jobs: 0, queues: [], received }, false)),
    handed: async () => {
      await harness.waitFor('a lease to be handed over', () => heard.length > 0)
      return (heard[0] as Leased).lease
    },
  }
  const { offeredAt } = await one.offer(parts)
  if (offeredAt !== undefined) return one
  // This store hands nothing over: what is enqueued waits for a claim.
  const job = await harness.put()
  await harness.inState(job.id, 'ready')
  assert.deepEqual(heard, [])
  return null
}

/** Each test with an idle worker, if the store hands jobs over. */
function whenIdle(tests: Readonly<Record<string, (harness: Harness, one: Idle) => Promise<void>>>): Tests {
  return Object.fromEntries(
    Object.entries(tests).map(([title, body]) => [
      title,
      async (harness: Harness) => {
        const one = await idle(harness)
        if (one !== null) await body(harness, one)
      },
    ]),
  )
}

export const handOverTopic: Topic = {
  name: 'hand-over',
  tests: whenIdle({
    'a new job is leased to a worker that offered to take it': async (harness, one) => {
      const job = await harness.put({ payload: '{"text":"a \\"b\\" \\n/ü"}' })
      const lease = await one.handed()
      assert.deepEqual(idsOf(lease.jobs), [job.id])
      assert.equal(lease.jobs[0]?.payload, job.payload)
      assert.equal(lease.queue, QUEUE)
      assert.equal(one.heard[0]?.nth, 1)
      const record = await harness.inState(job.id, 'running')
      assert.equal(record.state === 'running' && record.worker, one.worker)
      const [held] = heldIn(one.worker, [lease])
      assert.ok(held !== undefined)
      await harness.settled(held, COMPLETED)
      await harness.inState(job.id, 'completed')
    },
    'the answer to an offer tells the store’s time': async (harness, one) => {
      const before = await harness.now()
      await harness.advance(1_000)
      const { offeredAt } = await one.offer()
      assert.ok(offeredAt !== undefined && offeredAt >= before + 1_000)
      await harness.advance(1_000)
      await harness.put()
      const { claimedAt } = await one.handed()
      assert.ok(claimedAt >= offeredAt + 1_000)
    },
    'a repeated flush is handed over once': async (harness, one) => {
      const job = newJob()
      const id = newFlushId()
      await harness.enqueue([job], id)
      await harness.enqueue([job], id)
      await one.handed()
      const next = await harness.put()
      await harness.waitFor('the next lease', () => one.heard.length > 1)
      const handed = one.heard.flatMap(({ lease }) => idsOf(lease.jobs))
      assert.deepEqual(handed, [job.id, next.id])
    },
    'a claim with an offer releases what was handed over and did not arrive': async (harness, one) => {
      const job = await harness.put()
      const { token } = await one.handed()
      const { leases } = await one.offer()
      assert.deepEqual(
        leases.map(({ jobs }) => idsOf(jobs)),
        [[job.id]],
        'and gets it itself',
      )
      assert.equal(leases[0]?.jobs[0]?.attempt, 1, 'no attempt was used')
      assert.equal(leases[0]?.jobs[0]?.crashes, 0)
      assert.notEqual(leases[0]?.token, token)
      const late = settleRequest({ token, position: 0 }, COMPLETED)
      assert.deepEqual((await harness.cycle(one.worker, [late], null)).settled, ['lost'])
    },
    'a claim with an offer keeps what has arrived': async (harness, one) => {
      const job = await harness.put()
      const { token } = await one.handed()
      const { leases } = await one.offer({ received: [token] })
      assert.deepEqual(leases, [])
      await one.offer()
      const { tokens } = await harness.store.heartbeat({ worker: one.worker, undelivered: [] })
      assert.deepEqual(tokens, [token])
      await harness.inState(job.id, 'running')
    },
    'an offer is over when it is withdrawn': async (harness, one) => {
      const before = await harness.put()
      const { token } = await one.handed()
      await one.withdraw([token])
      const after = await harness.put()
      await harness.inState(before.id, 'running')
      await harness.inState(after.id, 'ready')
    },
    'a withdrawal releases what did not arrive': async (harness, one) => {
      const job = await harness.put()
      await one.handed()
      await one.withdraw([])
      const record = await harness.inState(job.id, 'ready')
      assert.equal(record.attempt, 0)
    },
    'an offer is over after its time': async (harness, one) => {
      await harness.advance(MINUTE_MS + 1)
      await harness.store.heartbeat({ worker: one.worker, undelivered: [] })
      await harness.inState((await harness.put()).id, 'ready')
    },
    'an offer is over once the worker’s lease has expired': async (harness, one) => {
      await one.offer({ forMs: 2 * LEASE_MS })
      await harness.advance(LEASE_MS + 1)
      await harness.inState((await harness.put()).id, 'ready')
    },
    'an offer is over once its worker has retired': async (harness, one) => {
      await harness.store.retire(one.worker)
      await harness.inState((await harness.put()).id, 'ready')
    },
    'an offer is for as many jobs as it says': async (harness, one) => {
      await one.offer({ jobs: 2 })
      const jobs = newJobs(3)
      for (const job of jobs) await harness.enqueue([job])
      await harness.waitFor('two leases', () => one.heard.length === 2)
      await harness.inState(jobs[2]?.id as JobId, 'ready')
    },
    'what the claim of an offer gets counts as taken': async (harness, one) => {
      await one.withdraw([])
      await harness.enqueue(newJobs(2))
      const { leases, offeredAt } = await one.offer({ jobs: 2 })
      assert.equal(leases[0]?.jobs.length, 2)
      assert.equal(offeredAt, undefined)
      await harness.inState((await harness.put()).id, 'ready')
    },
    'an offer is only for its queues': async (harness, one) => {
      await one.offer({ queues: ['a', 'b'] })
      await harness.inState((await harness.put()).id, 'ready')
      const job = await harness.put({ queue: 'b' })
      assert.deepEqual(idsOf((await one.handed()).jobs), [job.id])
    },
    'a job of a paused queue is not handed over': async (harness) => {
      await harness.store.admin.setPaused(QUEUE, true)
      await harness.inState((await harness.put()).id, 'ready')
    },
    'a delayed job is not handed over': async (harness) => {
      await harness.inState((await harness.put({ due: { inMs: MINUTE_MS } })).id, 'scheduled')
    },
    'a job that is handed over has left its key, if it holds that while it is ready': async (
      harness,
      one,
    ) => {
      const unique = uniqueWhile('ready')
      await harness.put({ unique })
      await one.handed()
      await harness.put({ unique })
    },
    'a job that is handed over can be cancelled': async (harness, one) => {
      const job = await harness.put()
      const { token } = await one.handed()
      await cancelOne(harness.store, job.id, 'not needed')
      const { cancelled } = await harness.store.heartbeat({ worker: one.worker, undelivered: [] })
      assert.deepEqual(cancelled, [{ token, position: 0, reason: 'not needed' }])
    },
    'jobs of several workers that enqueue at once are handed over once': async (harness, one) => {
      const other = await idle(harness)
      assert.ok(other !== null)
      const jobs = newJobs(8)
      await Promise.all(jobs.map((job) => harness.enqueue([job])))
      const rest = await harness.claimIds(await harness.worker(), { limit: 8 })
      const handed = (): string[] => [...one.heard, ...other.heard].flatMap(({ lease }) => idsOf(lease.jobs))
      await harness.waitFor('all to be handed over', () => handed().length + rest.length === jobs.length)
      assert.deepEqual([...handed(), ...rest].toSorted(), idsOf(jobs).toSorted())
    },
    'a lost worker’s handed job runs elsewhere': async (harness, one) => {
      const job = await harness.put()
      await one.handed()
      await harness.lose(one.worker)
      await harness.passAndPromote(MINUTE_MS)
      const held = await harness.claimOne(await harness.worker(), { suspects: true })
      assert.equal(held.job.id, job.id)
    },
  }),
}
