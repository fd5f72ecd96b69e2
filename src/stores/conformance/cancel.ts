/** Cancelling: a waiting job never runs, a running one is notified, a final one stays unchanged. */
import assert from 'node:assert/strict'
import type { WorkerId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import type { Settlement } from '../../job/settlement.ts'
import type { CancelNotice } from '../store.ts'
import { each, type Topic } from './suite.ts'
import {
  CANCELLED,
  cancelOne,
  changeJobs,
  COMPLETED,
  CONFIRM,
  DEAD,
  heldIn,
  MINUTE_MS,
  near,
  newJobId,
  newJobs,
  RELEASE,
  retry,
  snooze,
  type Harness,
} from './support.ts'

async function noticesFor(harness: Harness, worker: WorkerId): Promise<readonly CancelNotice[]> {
  return (await harness.store.heartbeat({ worker, undelivered: [] })).cancelled
}

/** Ways for a job to wait; after a cancel it must never run. */
const WAITS: readonly (readonly [how: string, make: (harness: Harness) => Promise<Pick<JobRecord, 'id'>>])[] =
  [
    ['ready', (harness) => harness.put()],
    ['scheduled', (harness) => harness.put({ due: { inMs: MINUTE_MS } })],
    ['to be retried', (harness) => harness.finished(retry())],
    ['snoozed', (harness) => harness.finished(snooze())],
    ['a suspect', async (harness) => ({ id: await harness.suspect() })],
  ]
const RETURNS: readonly Settlement[] = [retry(), snooze(), RELEASE, CONFIRM]
const ENDS: readonly Settlement[] = [COMPLETED, DEAD, CANCELLED]

export const cancelTopic: Topic = {
  name: 'cancel',
  tests: {
    ...each(
      WAITS,
      ([how]) => `a cancelled job that was ${how} never runs`,
      async (harness, [, make]) => {
        const { id } = await make(harness)
        const now = await harness.now()
        assert.equal(await cancelOne(harness.store, id, 'changed my mind'), 'cancelled')
        const record = await harness.inState(id, 'cancelled')
        assert.equal(record.reason, 'changed my mind')
        near(record.finishedAt, now, 'finishedAt')
        await harness.passAndPromote(10 * MINUTE_MS)
        assert.deepEqual(await harness.claim(await harness.worker(), { suspects: true }), [])
      },
    ),
    'a cancel needs no reason': async (harness) => {
      const job = await harness.put()
      await cancelOne(harness.store, job.id, null)
      assert.equal((await harness.inState(job.id, 'cancelled')).reason, null)
    },
    'the worker of a running job is told, until it has settled': async (harness) => {
      await harness.enqueue(newJobs(3))
      const worker = await harness.worker()
      const [, second] = await harness.claimAll(worker)
      assert.ok(second !== undefined)
      assert.deepEqual(await noticesFor(harness, worker), [])
      assert.equal(await cancelOne(harness.store, second.job.id, 'stop it'), 'requested')
      assert.equal((await harness.inState(second.job.id, 'running')).cancelRequested, true)
      const notice = { token: second.token, position: 1, reason: 'stop it' }
      assert.deepEqual(await noticesFor(harness, worker), [notice])
      assert.deepEqual(await noticesFor(harness, worker), [notice], 'also the next time: answers get lost')
      assert.deepEqual(await noticesFor(harness, await harness.worker()), [], 'but nobody else')
      await harness.settled(second, { type: 'cancelled', reason: 'stop it' })
      assert.equal((await harness.inState(second.job.id, 'cancelled')).reason, 'stop it')
      assert.deepEqual(await noticesFor(harness, worker), [])
    },
    'a cancel that took effect is not reported again, and later cancels say so': async (harness) => {
      await harness.enqueue(newJobs(3))
      const worker = await harness.worker()
      const [first, second] = await harness.claimAll(worker)
      assert.ok(first !== undefined && second !== undefined)
      for (const held of [first, second])
        assert.equal(await cancelOne(harness.store, held.job.id, 'stop it'), 'requested')
      const heard = [{ token: second.token, position: second.position }]
      const { cancelled } = await harness.store.heartbeat({ worker, undelivered: [], heard })
      const left = [{ token: first.token, position: first.position, reason: 'stop it' }]
      assert.deepEqual(cancelled, left, 'by the heartbeat that tells it, too')
      assert.deepEqual(await noticesFor(harness, worker), left)
      assert.equal(await cancelOne(harness.store, second.job.id, 'again'), 'heard')
      assert.equal(await cancelOne(harness.store, first.job.id, 'again'), 'requested')
      assert.equal((await harness.inState(second.job.id, 'running')).cancelRequested, true)
      await harness.settled(second, RELEASE)
      assert.equal((await harness.inState(second.job.id, 'cancelled')).reason, 'stop it')
      assert.equal(await cancelOne(harness.store, second.job.id, 'once more'), 'final')
    },
    'only the worker that holds a job reports its cancel, and only where there is one': async (harness) => {
      const held = await harness.running()
      const [other, uncancelled] = [await harness.worker(), await harness.running({ queue: 'other' })]
      await cancelOne(harness.store, held.job.id, null)
      const { token, position } = held
      await harness.store.heartbeat({ worker: other, undelivered: [], heard: [{ token, position }] })
      for (const nothing of [{ token, position: position + 1 }, uncancelled]) {
        const heard = [{ token: nothing.token, position: nothing.position }]
        await harness.store.heartbeat({ worker: held.worker, undelivered: [], heard })
        await harness.store.heartbeat({ worker: uncancelled.worker, undelivered: [], heard })
      }
      assert.equal((await noticesFor(harness, held.worker)).length, 1)
      assert.equal(await cancelOne(harness.store, uncancelled.job.id, null), 'requested')
      assert.equal((await noticesFor(harness, uncancelled.worker)).length, 1)
    },
    'a job that is replayed has forgotten that a cancel took effect': async (harness) => {
      const held = await harness.running()
      const { id } = held.job
      const heard = [{ token: held.token, position: held.position }]
      await cancelOne(harness.store, id, 'stop it')
      await harness.store.heartbeat({ worker: held.worker, undelivered: [], heard })
      await harness.settled(held, DEAD)
      await changeJobs(harness.store, { ids: [id] }, { type: 'replay' }, 10, null)
      const again = await harness.claimOne(await harness.worker())
      assert.deepEqual(await noticesFor(harness, again.worker), [])
      assert.equal(await cancelOne(harness.store, id, null), 'requested')
    },
    'asking twice to cancel a running job is the same as asking once': async (harness) => {
      const held = await harness.running()
      assert.equal(await cancelOne(harness.store, held.job.id, 'first'), 'requested')
      assert.equal(await cancelOne(harness.store, held.job.id, 'second'), 'requested')
      const reasons = (await noticesFor(harness, held.worker)).map(({ reason }) => reason)
      assert.deepEqual(reasons, ['first'], 'the first reason stays')
    },
    ...each(
      RETURNS,
      ({ type }) => `a job to be cancelled does not come back by ${type}`,
      async (harness, settlement) => {
        const held = await harness.running()
        await cancelOne(harness.store, held.job.id, 'stop it')
        assert.equal(await harness.settle(held, settlement), 'written')
        assert.equal((await harness.inState(held.job.id, 'cancelled')).reason, 'stop it')
        await harness.passAndPromote(10 * MINUTE_MS)
        assert.deepEqual(await harness.claim(await harness.worker()), [])
      },
    ),
    'a job that completes before its worker hears of the cancel is completed': async (harness) => {
      const held = await harness.running()
      await cancelOne(harness.store, held.job.id, 'too late')
      await harness.settled(held, COMPLETED)
      await harness.inState(held.job.id, 'completed')
    },
    'a job to be cancelled whose worker is lost is cancelled by the rescue': async (harness) => {
      const held = await harness.running()
      await cancelOne(harness.store, held.job.id, 'stop it')
      const { jobs } = await harness.lose(held.worker)
      assert.deepEqual(
        jobs.map(({ id, to }) => ({ id, to })),
        [{ id: held.job.id, to: 'cancelled' }],
      )
      assert.equal((await harness.inState(held.job.id, 'cancelled')).reason, 'stop it')
    },
    'a job to be cancelled in a lease that is released as undelivered is cancelled': async (harness) => {
      const held = await harness.running()
      await cancelOne(harness.store, held.job.id, 'stop it')
      await harness.store.heartbeat({ worker: held.worker, undelivered: [held.token] })
      assert.equal((await harness.inState(held.job.id, 'cancelled')).reason, 'stop it')
    },
    ...each(
      ENDS,
      ({ type }) => `a final job stays what it is: ${type}`,
      async (harness, settlement) => {
        const before = await harness.finished(settlement)
        assert.equal(await cancelOne(harness.store, before.id, 'too late'), 'final')
        assert.deepEqual(await harness.record(before.id), before)
      },
    ),
    'cancelling twice says that the job is final': async (harness) => {
      const job = await harness.put()
      await cancelOne(harness.store, job.id, 'first')
      assert.equal(await cancelOne(harness.store, job.id, 'second'), 'final')
      assert.equal((await harness.inState(job.id, 'cancelled')).reason, 'first')
    },
    'a job that nobody knows is missing': async (harness) => {
      assert.equal(await cancelOne(harness.store, newJobId(), null), 'missing')
    },
    'a cancel that crosses a claim stops the job or tells its worker': async (harness) => {
      const jobs = newJobs(30)
      await harness.enqueue(jobs)
      const worker = await harness.worker()
      const [leases, ...answers] = await Promise.all([
        harness.claim(worker, { limit: 15 }),
        ...jobs.map(({ id }) => cancelOne(harness.store, id, null)),
      ])
      const claimed = new Set(heldIn(worker, leases).map(({ job }) => job.id))
      const told = await noticesFor(harness, worker)
      for (const [index, { id }] of jobs.entries()) {
        const expected = claimed.has(id) ? 'requested' : 'cancelled'
        assert.equal(answers[index], expected, 'the answer tells what happened')
      }
      assert.equal(told.length, claimed.size)
      assert.deepEqual(
        await harness.claim(worker, { limit: 100 }),
        [],
        'nothing is claimed after the answers',
      )
    },
  },
}
