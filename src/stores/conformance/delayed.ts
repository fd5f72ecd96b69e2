/** Delayed jobs: due by a delay or by a time of the store's clock, and promoted when they are. */
import assert from 'node:assert/strict'
import { PRIORITY_LEVELS } from '../../job/rank.ts'
import type { Topic } from './suite.ts'
import { cancelOne, idsOf, MINUTE_MS, near, newJob, newJobs, SECOND_MS } from './support.ts'

export const delayedTopic: Topic = {
  name: 'delayed jobs',
  tests: {
    'a delayed job is scheduled until its delay is over and a promote moves it': async (harness) => {
      const job = await harness.put({ due: { inMs: 10 * MINUTE_MS } })
      const { dueAt, createdAt } = await harness.inState(job.id, 'scheduled')
      near(dueAt, createdAt + 10 * MINUTE_MS, 'dueAt')
      const worker = await harness.worker(60 * MINUTE_MS)
      await harness.passAndPromote(9 * MINUTE_MS)
      assert.deepEqual(await harness.claim(worker), [], 'a minute early')
      await harness.inState(job.id, 'scheduled')
      await harness.advance(2 * MINUTE_MS)
      assert.deepEqual(await harness.store.upkeep.promote(10), { promoted: 1, nextInMs: null })
      assert.equal((await harness.inState(job.id, 'ready')).dueAt, dueAt, 'its due time stays')
      assert.deepEqual(await harness.claimIds(worker), [job.id])
    },
    'a job can be due at a time': async (harness) => {
      const atMs = (await harness.now()) + 10 * MINUTE_MS
      const job = await harness.put({ due: { atMs } })
      assert.equal((await harness.inState(job.id, 'scheduled')).dueAt, atMs)
      await harness.passAndPromote(9 * MINUTE_MS)
      await harness.inState(job.id, 'scheduled')
      await harness.passAndPromote(2 * MINUTE_MS)
      await harness.inState(job.id, 'ready')
    },
    'a time in the past is due now and gains no head start': async (harness) => {
      const plain = await harness.put()
      await harness.advance(SECOND_MS)
      const late = await harness.put({ due: { atMs: 86_400_000 } })
      const { dueAt, createdAt } = await harness.inState(late.id, 'ready')
      assert.equal(dueAt, createdAt)
      assert.deepEqual(await harness.claimIds(await harness.worker()), [plain.id, late.id])
    },
    'promote moves no more than its limit and tells what is left': async (harness) => {
      await harness.enqueue(newJobs(5, { due: { inMs: MINUTE_MS } }))
      await harness.put({ due: { inMs: 60 * MINUTE_MS } })
      await harness.advance(2 * MINUTE_MS)
      const first = await harness.store.upkeep.promote(3)
      assert.equal(first.promoted, 3)
      assert.ok(first.nextInMs !== null && first.nextInMs <= 0, 'the next one is due already')
      const second = await harness.store.upkeep.promote(3)
      assert.equal(second.promoted, 2)
      near(second.nextInMs ?? 0, 58 * MINUTE_MS, 'the next one is due in 58 minutes')
      assert.equal((await harness.store.upkeep.promote(3)).promoted, 0)
    },
    'promote tells when the next job is due, or that none is': async (harness) => {
      assert.deepEqual(await harness.store.upkeep.promote(10), { promoted: 0, nextInMs: null })
      await harness.put({ due: { inMs: 20 * MINUTE_MS } })
      await harness.put({ due: { inMs: 10 * MINUTE_MS }, queue: 'other' })
      const { promoted, nextInMs } = await harness.store.upkeep.promote(10)
      assert.equal(promoted, 0)
      near(nextInMs ?? 0, 10 * MINUTE_MS, 'the sooner of both')
    },
    'promotes at once move each job once': async (harness) => {
      await harness.enqueue(newJobs(40, { due: { inMs: MINUTE_MS } }))
      await harness.advance(2 * MINUTE_MS)
      const answers = await Promise.all(Array.from({ length: 8 }, () => harness.store.upkeep.promote(10)))
      const promoted = answers.reduce((sum, answer) => sum + answer.promoted, 0)
      const { promoted: rest } = await harness.store.upkeep.promote(100)
      assert.equal(promoted + rest, 40)
      assert.equal((await harness.claimIds(await harness.worker(), { limit: 100 })).length, 40)
    },
    'a promoted job stands by when it was due, not by when it was promoted': async (harness) => {
      const delayed = await harness.put({ due: { inMs: MINUTE_MS } })
      await harness.advance(2 * MINUTE_MS)
      const plain = await harness.put()
      await harness.store.upkeep.promote(10)
      assert.deepEqual(await harness.claimIds(await harness.worker()), [delayed.id, plain.id])
    },
    'a priority counts from the due time': async (harness) => {
      const { urgent, background } = PRIORITY_LEVELS
      const jobs = [background, urgent].map((priority) => newJob({ priority, due: { inMs: MINUTE_MS } }))
      await harness.enqueue(jobs)
      await harness.passAndPromote(2 * MINUTE_MS)
      assert.deepEqual(await harness.claimIds(await harness.worker()), idsOf(jobs.toReversed()))
    },
    'a cancelled job is never promoted': async (harness) => {
      const job = await harness.put({ due: { inMs: MINUTE_MS } })
      assert.equal(await cancelOne(harness.store, job.id, null), 'cancelled')
      await harness.advance(2 * MINUTE_MS)
      assert.deepEqual(await harness.store.upkeep.promote(10), { promoted: 0, nextInMs: null })
      await harness.inState(job.id, 'cancelled')
    },
  },
}
