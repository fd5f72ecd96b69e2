/** Cancelling: a waiting job never runs, a running one is told, a final one stays what it is. */
import assert from 'node:assert/strict'
import type { WorkerId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import type { Settlement } from '../../job/settlement.ts'
import type { CancelNotice } from '../store.ts'
import { each, type Topic } from './suite.ts'
import {
  CANCELLED,
  COMPLETED,
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
  return (await harness.store.heartbeat({ worker, strangers: [] })).cancelled
}

/** Ways for a job to wait, from which a cancel must keep it for ever. */
const WAITS: readonly (readonly [how: string, make: (harness: Harness) => Promise<Pick<JobRecord, 'id'>>])[] =
  [
    ['ready', (harness) => harness.put()],
    ['scheduled', (harness) => harness.put({ due: { inMs: MINUTE_MS } })],
    ['to be retried', (harness) => harness.finished(retry())],
    ['snoozed', (harness) => harness.finished(snooze())],
    ['a suspect', async (harness) => ({ id: await harness.suspect() })],
  ]
const RETURNS: readonly Settlement[] = [retry(), snooze(), RELEASE]
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
        assert.equal(await harness.store.admin.cancel(id, 'changed my mind'), 'cancelled')
        const record = await harness.inState(id, 'cancelled')
        assert.equal(record.reason, 'changed my mind')
        near(record.finishedAt, now, 'finishedAt')
        await harness.passAndPromote(10 * MINUTE_MS)
        assert.deepEqual(await harness.claim(await harness.worker(), { suspects: true }), [])
      },
    ),
    'a cancel needs no reason': async (harness) => {
      const job = await harness.put()
      await harness.store.admin.cancel(job.id, null)
      assert.equal((await harness.inState(job.id, 'cancelled')).reason, null)
    },
    'the worker of a running job is told, until it has settled': async (harness) => {
      await harness.enqueue(newJobs(3))
      const worker = await harness.worker()
      const [, second] = await harness.claimAll(worker)
      assert.ok(second !== undefined)
      assert.deepEqual(await noticesFor(harness, worker), [])
      assert.equal(await harness.store.admin.cancel(second.job.id, 'stop it'), 'requested')
      assert.equal((await harness.inState(second.job.id, 'running')).cancelRequested, true)
      const notice = { token: second.token, position: 1, reason: 'stop it' }
      assert.deepEqual(await noticesFor(harness, worker), [notice])
      assert.deepEqual(await noticesFor(harness, worker), [notice], 'also the next time: answers get lost')
      assert.deepEqual(await noticesFor(harness, await harness.worker()), [], 'but nobody else')
      await harness.settled(second, { type: 'cancelled', reason: 'stop it' })
      assert.equal((await harness.inState(second.job.id, 'cancelled')).reason, 'stop it')
      assert.deepEqual(await noticesFor(harness, worker), [])
    },
    'asking twice to cancel a running job is the same as asking once': async (harness) => {
      const held = await harness.running()
      assert.equal(await harness.store.admin.cancel(held.job.id, 'first'), 'requested')
      assert.equal(await harness.store.admin.cancel(held.job.id, 'first'), 'requested')
      assert.equal((await noticesFor(harness, held.worker)).length, 1)
    },
    ...each(
      RETURNS,
      ({ type }) => `a job to be cancelled does not come back by ${type}`,
      async (harness, settlement) => {
        const held = await harness.running()
        await harness.store.admin.cancel(held.job.id, 'stop it')
        assert.equal(await harness.settle(held, settlement), 'written')
        assert.equal((await harness.inState(held.job.id, 'cancelled')).reason, 'stop it')
        await harness.passAndPromote(10 * MINUTE_MS)
        assert.deepEqual(await harness.claim(await harness.worker()), [])
      },
    ),
    'a job that completes before its worker hears of the cancel is completed': async (harness) => {
      const held = await harness.running()
      await harness.store.admin.cancel(held.job.id, 'too late')
      await harness.settled(held, COMPLETED)
      await harness.inState(held.job.id, 'completed')
    },
    'a job to be cancelled whose worker is lost is cancelled by the rescue': async (harness) => {
      const held = await harness.running()
      await harness.store.admin.cancel(held.job.id, 'stop it')
      const { jobs } = await harness.lose(held.worker)
      assert.deepEqual(
        jobs.map(({ id, to }) => ({ id, to })),
        [{ id: held.job.id, to: 'cancelled' }],
      )
      assert.equal((await harness.inState(held.job.id, 'cancelled')).reason, 'stop it')
    },
    'a job to be cancelled in a lease that is released as a stranger is cancelled': async (harness) => {
      const held = await harness.running()
      await harness.store.admin.cancel(held.job.id, 'stop it')
      await harness.store.heartbeat({ worker: held.worker, strangers: [held.token] })
      assert.equal((await harness.inState(held.job.id, 'cancelled')).reason, 'stop it')
    },
    ...each(
      ENDS,
      ({ type }) => `a final job stays what it is: ${type}`,
      async (harness, settlement) => {
        const before = await harness.finished(settlement)
        assert.equal(await harness.store.admin.cancel(before.id, 'too late'), 'final')
        assert.deepEqual(await harness.record(before.id), before)
      },
    ),
    'cancelling twice says that the job is final': async (harness) => {
      const job = await harness.put()
      await harness.store.admin.cancel(job.id, 'first')
      assert.equal(await harness.store.admin.cancel(job.id, 'second'), 'final')
      assert.equal((await harness.inState(job.id, 'cancelled')).reason, 'first')
    },
    'a job that nobody knows is missing': async (harness) => {
      assert.equal(await harness.store.admin.cancel(newJobId(), null), 'missing')
    },
    'a cancel that crosses a claim stops the job or tells its worker': async (harness) => {
      const jobs = newJobs(30)
      await harness.enqueue(jobs)
      const worker = await harness.worker()
      const [leases, ...answers] = await Promise.all([
        harness.claim(worker, { limit: 15 }),
        ...jobs.map(({ id }) => harness.store.admin.cancel(id, null)),
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
