/** Edits of jobs that wait: another payload, another rank, another time. */
import assert from 'node:assert/strict'
import type { JobId } from '../../job/ids.ts'
import type { JobEdit } from '../store.ts'
import { each, type Topic } from './suite.ts'
import {
  CANCELLED,
  cancelOne,
  COMPLETED,
  DEAD,
  editOne,
  MINUTE_MS,
  near,
  newJobId,
  retry,
  SECOND_MS,
  uniqueWhile,
  type Harness,
} from './support.ts'

const HOUR_MS = 60 * MINUTE_MS

function edit({ store }: Harness, id: JobId, change: JobEdit): Promise<string> {
  return editOne(store, id, change)
}

export const editTopic: Topic = {
  name: 'edits of waiting jobs',
  tests: {
    'another payload reaches the handler; all else stays': async (harness) => {
      const job = await harness.put({
        envelope: { ...(await harness.put()).envelope, tags: ['a'] },
        queue: 'q',
      })
      const before = await harness.record(job.id)
      const payload = '{"to":"grace \\"quoted\\" 🛠️"}'
      assert.equal(await edit(harness, job.id, { payload }), 'edited')
      assert.deepEqual(await harness.record(job.id), { ...before, payload })
      assert.equal((await harness.claimOne(await harness.worker(), { queue: 'q' })).job.payload, payload)
    },
    ...each(
      [
        ['short', 'long'],
        ['long', 'short'],
        ['long', 'long'],
      ] as const,
      ([from, to]) => `a ${from} payload becomes a ${to} one`,
      async (harness, [from, to]) => {
        const text = { short: '"short"', long: JSON.stringify('x'.repeat(10_000)) }
        const job = await harness.put({ payload: text[from] })
        const payload = to === 'long' ? JSON.stringify('y'.repeat(12_000)) : '"other"'
        await edit(harness, job.id, { payload })
        assert.equal((await harness.record(job.id)).payload, payload)
        const held = await harness.claimOne(await harness.worker())
        assert.equal(held.job.payload, payload)
        await harness.settled(held, COMPLETED)
      },
    ),
    'another rank changes who comes first': async (harness) => {
      const [first, second] = [await harness.put(), await harness.put()]
      const rank = { priority: 9, headStartMs: HOUR_MS }
      assert.equal(await edit(harness, second.id, { rank }), 'edited')
      const record = await harness.record(second.id)
      assert.deepEqual([record.priority, record.headStartMs], [9, HOUR_MS])
      assert.deepEqual(await harness.claimIds(await harness.worker()), [second.id, first.id])
    },
    'a ready job can be put off, and comes when it is due': async (harness) => {
      const job = await harness.put()
      const now = await harness.now()
      assert.equal(await edit(harness, job.id, { due: { inMs: 10 * MINUTE_MS } }), 'edited')
      near((await harness.inState(job.id, 'scheduled')).dueAt, now + 10 * MINUTE_MS, 'it is due then')
      const worker = await harness.worker(HOUR_MS)
      assert.deepEqual(await harness.claimIds(worker), [])
      await harness.passAndPromote(11 * MINUTE_MS)
      assert.deepEqual(await harness.claimIds(worker), [job.id])
    },
    'a scheduled job can be brought forward': async (harness) => {
      const job = await harness.put({ due: { inMs: HOUR_MS } })
      assert.equal(await edit(harness, job.id, { due: { inMs: 0 } }), 'edited')
      await harness.inState(job.id, 'ready')
      assert.deepEqual(await harness.claimIds(await harness.worker()), [job.id])
    },
    'a time in the past means now, and buys no head start': async (harness) => {
      const first = await harness.put()
      const job = await harness.put({ due: { inMs: HOUR_MS } })
      const now = await harness.now()
      await edit(harness, job.id, { due: { atMs: now - HOUR_MS } })
      near((await harness.inState(job.id, 'ready')).dueAt, now, 'it is due now')
      assert.deepEqual(await harness.claimIds(await harness.worker()), [first.id, job.id])
    },
    'a retry keeps its attempts and its error': async (harness) => {
      const held = await harness.running()
      const before = await harness.settled(held, retry(HOUR_MS))
      await edit(harness, held.job.id, { due: { inMs: 0 }, payload: '"new"' })
      const { attempt, error } = await harness.inState(held.job.id, 'ready')
      assert.deepEqual([attempt, error], [before.attempt, before.error])
      assert.equal((await harness.claimOne(await harness.worker())).job.attempt, 2)
    },
    'a suspect stays one': async (harness) => {
      const id = await harness.suspect()
      await edit(harness, id, { payload: '"new"' })
      const worker = await harness.worker()
      assert.deepEqual(await harness.claimIds(worker), [])
      assert.equal((await harness.claimOne(worker, { suspects: true })).job.crashes, 1)
    },
    'the job keeps its unique key': async (harness) => {
      const unique = uniqueWhile('unfinished')
      const job = await harness.put({ unique })
      await edit(harness, job.id, { payload: '"new"', due: { inMs: MINUTE_MS } })
      const repeat = await harness.enqueue([{ ...job, id: newJobId() }])
      assert.deepEqual(repeat, [{ id: job.id, outcome: 'duplicate' }])
      await cancelOne(harness.store, job.id, null)
      await harness.put({ unique })
    },
    'a job that runs stays as it is': async (harness) => {
      const held = await harness.running()
      const before = await harness.record(held.job.id)
      assert.equal(await edit(harness, held.job.id, { payload: '"new"' }), 'running')
      assert.deepEqual(await harness.record(held.job.id), before)
    },
    ...each(
      [COMPLETED, DEAD, CANCELLED],
      ({ type }) => `a job that ended as ${type} stays as it is`,
      async (harness, settlement) => {
        const before = await harness.finished(settlement)
        assert.equal(await edit(harness, before.id, { due: { inMs: SECOND_MS } }), 'final')
        assert.deepEqual(await harness.record(before.id), before)
      },
    ),
    'there is nothing to edit of a job that is not there': async (harness) => {
      assert.equal(await edit(harness, newJobId(), { payload: '"new"' }), 'missing')
    },
    'of an edit and a claim at once, one comes first': async (harness) => {
      for (let round = 0; round < 5; round++) {
        const job = await harness.put({ queue: `q${round}` })
        const worker = await harness.worker()
        const [answer, claimed] = await Promise.all([
          edit(harness, job.id, { payload: '"new"' }),
          harness.claimAll(worker, { queue: job.queue }),
        ])
        const held = claimed[0] ?? (await harness.claimOne(worker, { queue: job.queue }))
        assert.equal(held.job.payload, answer === 'edited' ? '"new"' : job.payload)
      }
    },
  },
}
