/** Dead letters: found and grouped by what they failed with and when, and replayed with another payload. */
import assert from 'node:assert/strict'
import type { DeadGroup } from '../store.ts'
import type { JobId } from '../../job/ids.ts'
import { changeAll, groupsOf as groups, listed } from './pages.ts'
import type { Topic } from './suite.ts'
import {
  changeJobs,
  COMPLETED,
  failure,
  MINUTE_MS,
  newJobs,
  retry,
  sameIds,
  settleRequest,
  type Harness,
  type JobParts,
} from './support.ts'

async function dead(harness: Harness, fingerprint: string, parts: JobParts = {}): Promise<JobId> {
  const error = { ...failure(`failed with ${fingerprint}`, 'permanent'), fingerprint }
  return (await harness.finished({ type: 'dead', error }, parts)).id
}

export const deadLettersTopic: Topic = {
  name: 'dead letters by what they failed with',
  tests: {
    'jobs are found by the fingerprint of their newest error': async (harness) => {
      const first = await dead(harness, 'f1')
      const second = await dead(harness, 'f2')
      await harness.finished(COMPLETED)
      const retried = await harness.finished(retry(MINUTE_MS, { ...failure(), fingerprint: 'f2' }))
      assert.deepEqual(await listed(harness, { fingerprints: ['f1'] }), [first])
      sameIds(await listed(harness, { fingerprints: ['f2'] }), [second, retried.id], 'waiting ones too')
      assert.deepEqual(await listed(harness, { fingerprints: ['f2'], states: ['dead'] }), [second])
      assert.deepEqual(await listed(harness, { fingerprints: ['f3'] }), [])
      assert.deepEqual(await listed(harness, { fingerprints: [] }), [])
      assert.deepEqual(await listed(harness, { fingerprints: [''] }), [], 'no error has no fingerprint')
    },
    'jobs are found by when they ended': async (harness) => {
      const early = await dead(harness, 'f1')
      await harness.advance(10 * MINUTE_MS)
      const between = await harness.now()
      await harness.advance(10 * MINUTE_MS)
      const late = await dead(harness, 'f1')
      await harness.put({ queue: 'waiting' })
      assert.deepEqual(await listed(harness, { finishedFrom: between }), [late])
      assert.deepEqual(await listed(harness, { finishedBefore: between }), [early])
      const { finishedAt } = await harness.inState(late, 'dead')
      assert.deepEqual(await listed(harness, { finishedFrom: finishedAt }), [late], 'from is inclusive')
      assert.deepEqual(await listed(harness, { finishedFrom: between, finishedBefore: finishedAt }), [])
    },
    'a change keeps to fingerprints and times': async (harness) => {
      const first = await dead(harness, 'f1')
      const second = await dead(harness, 'f2')
      const filter = { fingerprints: ['f1'], finishedBefore: (await harness.now()) + MINUTE_MS }
      assert.deepEqual(await changeAll(harness, filter, { type: 'replay' }), { changed: 1, skipped: 0 })
      await harness.inState(first, 'ready')
      await harness.inState(second, 'dead')
    },
    'dead jobs are grouped by queue, name and fingerprint': async (harness) => {
      await dead(harness, 'f1')
      await harness.advance(MINUTE_MS)
      const newest = await dead(harness, 'f1')
      const other = await dead(harness, 'f2')
      const elsewhere = await dead(harness, 'f1', { queue: 'other' })
      const named = await dead(harness, 'f1', { name: 'mail.bounce' })
      await harness.finished(retry(MINUTE_MS, { ...failure(), fingerprint: 'f1' }))
      const found = await groups(harness)
      const [largest, ...rest] = found
      assert.ok(largest !== undefined)
      const { finishedAt } = await harness.inState(newest, 'dead')
      assert.deepEqual(
        { ...largest, firstAt: 0 },
        {
          queue: 'default',
          name: 'mail.send',
          fingerprint: 'f1',
          count: 2,
          firstAt: 0,
          lastAt: finishedAt,
          newest,
          kind: 'permanent',
          message: 'failed with f1',
        },
      )
      assert.ok(largest.firstAt < largest.lastAt, 'the first came before the last')
      sameIds(
        rest.map((group) => group.newest),
        [other, elsewhere, named],
        'each of the others is a group of its own',
      )
    },
    'groups keep to the filter, and pages of them add up': async (harness) => {
      await harness.enqueue(newJobs(5))
      const worker = await harness.worker()
      const held = await harness.claimAll(worker)
      const error = { ...failure(), fingerprint: 'f1' }
      await harness.cycle(
        worker,
        held.map((one) => settleRequest(one, { type: 'dead', error })),
        null,
      )
      await dead(harness, 'f2', { queue: 'other' })
      const counts = (found: readonly DeadGroup[]): unknown => found.map(({ queue, count }) => [queue, count])
      assert.deepEqual(counts(await groups(harness, {}, 2)), [
        ['default', 5],
        ['other', 1],
      ])
      assert.deepEqual(counts(await groups(harness, { queues: ['other'] }, 1)), [['other', 1]])
      assert.deepEqual(counts(await groups(harness, { names: ['nobody'] })), [])
    },
    'replays in many steps bring back every dead job that matches, and no other': async (harness) => {
      const wanted: JobId[] = []
      for (let count = 0; count < 12; count++)
        (count % 3 === 0 ? wanted : []).push(await dead(harness, count % 3 === 0 ? 'f1' : 'f2'))
      const answer = await changeAll(
        harness,
        { states: ['dead'], fingerprints: ['f1'] },
        { type: 'replay' },
        2,
      )
      assert.deepEqual(answer, { changed: 4, skipped: 0 })
      sameIds(await listed(harness, { states: ['ready'] }), wanted, 'those that match')
      assert.equal((await listed(harness, { states: ['dead'] })).length, 8)
      assert.deepEqual(
        (await groups(harness, {}, 3)).map(({ fingerprint, count }) => [fingerprint, count]),
        [['f2', 8]],
      )
    },
    'a replay can change the payload': async (harness) => {
      const id = await dead(harness, 'f1', { payload: '{"to":"ada"}' })
      const kept = await dead(harness, 'f1', { payload: '{"to":"bob"}' })
      const payload = `{"to":"grace","note":"with \\"quotes\\" 🛠️","long":"${'x'.repeat(5_000)}"}`
      await changeJobs(harness.store, { ids: [id] }, { type: 'replay', payload }, 10, null)
      assert.equal((await harness.inState(id, 'ready')).payload, payload)
      const { job } = await harness.claimOne(await harness.worker())
      assert.deepEqual([job.id, job.payload, job.attempt], [id, payload, 1])
      assert.equal((await harness.record(kept)).payload, '{"to":"bob"}')
    },
    'a long payload can be replaced by a short one': async (harness) => {
      const id = await dead(harness, 'f1', { payload: JSON.stringify('x'.repeat(10_000)) })
      await changeJobs(harness.store, { ids: [id] }, { type: 'replay', payload: '"short"' }, 10, null)
      const held = await harness.claimOne(await harness.worker())
      assert.equal(held.job.payload, '"short"')
      await harness.settled(held, COMPLETED)
      assert.equal((await harness.record(id)).payload, '"short"')
    },
  },
}
