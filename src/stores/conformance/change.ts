/** Dead letters and bulk changes: replay, discard and cancel, by filter and in bounded steps. */
import assert from 'node:assert/strict'
import type { JobId } from '../../job/ids.ts'
import type { JobChange, JobFilter } from '../store.ts'
import { changeAll as change, listed } from './pages.ts'
import type { Topic } from './suite.ts'
import {
  CANCELLED,
  changeJobs,
  type ChangedPage,
  COMPLETED,
  DEAD,
  idsOf,
  MINUTE_MS,
  near,
  newJobs,
  retry,
  SECOND_MS,
  settleRequest,
  type Harness,
} from './support.ts'

const REPLAY: JobChange = { type: 'replay' }
const DISCARD: JobChange = { type: 'discard' }
const CANCEL: JobChange = { type: 'cancel', reason: 'spring cleaning' }

/** Dead jobs, in order of id. */
async function deadJobs(harness: Harness, count: number): Promise<JobId[]> {
  await harness.enqueue(newJobs(count))
  const worker = await harness.worker()
  const held = await harness.claimAll(worker, { limit: count })
  await harness.cycle(
    worker,
    held.map((one) => settleRequest(one, DEAD)),
    null,
  )
  return held.map(({ job }) => job.id).toSorted()
}

export const changeTopic: Topic = {
  name: 'dead letters and bulk changes',
  tests: {
    'a replayed job is ready with all its attempts again': async (harness) => {
      const worker = await harness.worker(60 * MINUTE_MS)
      const job = await harness.put()
      await harness.settled(await harness.claimOne(worker), retry(SECOND_MS))
      await harness.passAndPromote(MINUTE_MS)
      await harness.settled(await harness.claimOne(worker), DEAD)
      await harness.advance(MINUTE_MS)
      const now = await harness.now()
      assert.deepEqual(await change(harness, { states: ['dead'] }, REPLAY), { changed: 1, skipped: 0 })
      const record = await harness.inState(job.id, 'ready')
      assert.equal(record.attempt, 0)
      near(record.dueAt, now, 'it is due now')
      assert.equal((await harness.claimOne(worker)).job.attempt, 1)
    },
    'a job that died of crashes can be replayed and may crash as often again': async (harness) => {
      const held = await harness.running({ maxCrashes: 1 })
      await harness.lose(held.worker)
      await harness.passAndPromote(2 * SECOND_MS)
      const second = await harness.worker()
      await harness.claimOne(second, { suspects: true })
      await harness.lose(second)
      await harness.inState(held.job.id, 'dead')
      assert.equal((await change(harness, {}, REPLAY)).changed, 1)
      const third = await harness.worker()
      await harness.claimOne(third, { suspects: true })
      const { jobs } = await harness.lose(third)
      assert.equal(jobs[0]?.to, 'scheduled', 'one more crash does not kill it at once')
    },
    'only dead jobs are replayed': async (harness) => {
      const untouched = [
        await harness.finished(COMPLETED),
        await harness.finished(CANCELLED),
        await harness.record((await harness.running()).job.id),
        await harness.finished(retry()),
        await harness.record((await harness.put()).id),
      ]
      assert.deepEqual(await change(harness, {}, REPLAY), { changed: 0, skipped: 5 })
      for (const before of untouched) assert.deepEqual(await harness.record(before.id), before)
    },
    'the settle that made a job dead changes nothing when it is repeated after a replay': async (harness) => {
      const held = await harness.running()
      await harness.settled(held, DEAD)
      await change(harness, {}, REPLAY)
      const replayed = await harness.record(held.job.id)
      assert.equal(await harness.settle(held, DEAD), 'already')
      assert.deepEqual(await harness.record(held.job.id), replayed)
    },
    'replays at once bring each job back once': async (harness) => {
      const ids = await deadJobs(harness, 10)
      const answers = await Promise.all(Array.from({ length: 5 }, () => change(harness, {}, REPLAY)))
      assert.equal(
        answers.reduce((sum, { changed }) => sum + changed, 0),
        10,
      )
      assert.deepEqual((await harness.claimIds(await harness.worker(), { limit: 100 })).toSorted(), ids)
    },
    'discarded jobs are forgotten, and only final ones can be': async (harness) => {
      const gone = [
        await harness.finished(COMPLETED),
        await harness.finished(DEAD),
        await harness.finished(CANCELLED),
      ]
      const kept = [(await harness.running()).job, await harness.finished(retry()), await harness.put()]
      assert.deepEqual(await change(harness, {}, DISCARD), { changed: 3, skipped: 3 })
      for (const { id } of gone) assert.equal(await harness.store.admin.get(id), null)
      assert.deepEqual(await listed(harness, {}), idsOf(kept).toReversed())
    },
    'a bulk cancel stops what waits, tells what runs and skips what is final': async (harness) => {
      const completed = await harness.finished(COMPLETED)
      const held = await harness.running()
      const waiting = await harness.put()
      const scheduled = await harness.put({ due: { inMs: MINUTE_MS } })
      assert.deepEqual(await change(harness, {}, CANCEL), { changed: 3, skipped: 1 })
      assert.equal((await harness.inState(waiting.id, 'cancelled')).reason, 'spring cleaning')
      await harness.inState(scheduled.id, 'cancelled')
      const { cancelled } = await harness.store.heartbeat({ worker: held.worker, undelivered: [] })
      assert.deepEqual(cancelled, [{ token: held.token, position: 0, reason: 'spring cleaning' }])
      assert.deepEqual(await harness.record(completed.id), completed)
    },
    'a change goes through in bounded steps, in order of id': async (harness) => {
      const ids = await deadJobs(harness, 7)
      const changed: number[] = []
      let after: JobId | null = null
      for (let step = 0; step < 20; step++) {
        const answer: ChangedPage = await changeJobs(harness.store, { states: ['dead'] }, REPLAY, 3, after)
        assert.ok(answer.changed <= 3, 'a step has no more than its limit')
        changed.push(answer.changed)
        const states = await Promise.all(ids.map(async (id) => (await harness.record(id)).state))
        const done = changed.reduce((sum, count) => sum + count, 0)
        assert.deepEqual(
          states,
          ids.map((_, index) => (index < done ? 'ready' : 'dead')),
          'the lowest ids go first',
        )
        after = answer.next
        if (after === null) break
      }
      assert.equal(
        changed.reduce((sum, count) => sum + count, 0),
        7,
      )
    },
    'skipped jobs count towards a step, so that every step ends': async (harness) => {
      await harness.enqueue(newJobs(5))
      const first = await changeJobs(harness.store, {}, REPLAY, 3, null)
      assert.equal(first.changed, 0)
      assert.ok(first.skipped <= 3 && first.next !== null)
      assert.deepEqual(await change(harness, {}, REPLAY, 3), { changed: 0, skipped: 5 })
    },
    'a change keeps to tags, times of creation and the beginning of ids': async (harness) => {
      const tagged = await harness.put({
        envelope: { correlationId: null, tags: ['old'], metadata: {}, retry: null, timeoutMs: null },
      })
      await harness.advance(10 * MINUTE_MS)
      const other = await harness.put()
      const { createdAt } = await harness.record(other.id)
      assert.deepEqual(await change(harness, { tags: ['new'] }, CANCEL), { changed: 0, skipped: 0 })
      assert.deepEqual(await change(harness, { tags: ['old'] }, CANCEL), { changed: 1, skipped: 0 })
      await harness.inState(tagged.id, 'cancelled')
      const late: JobFilter = { createdFrom: createdAt, idPrefix: other.id.slice(0, 30) }
      assert.deepEqual(await change(harness, { ...late, createdBefore: createdAt }, CANCEL), {
        changed: 0,
        skipped: 0,
      })
      assert.deepEqual(await change(harness, late, CANCEL), { changed: 1, skipped: 0 })
      await harness.inState(other.id, 'cancelled')
    },
    'a change touches only what its filter names': async (harness) => {
      const wanted = await harness.finished(DEAD, { name: 'a', queue: 'one' })
      const others = [
        await harness.finished(DEAD, { name: 'b', queue: 'one' }),
        await harness.finished(DEAD, { name: 'a', queue: 'two' }),
        await harness.finished(COMPLETED, { name: 'a', queue: 'one' }),
      ]
      const filter: JobFilter = { names: ['a'], queues: ['one'], states: ['dead'] }
      assert.deepEqual(await change(harness, filter, DISCARD), { changed: 1, skipped: 0 })
      assert.equal(await harness.store.admin.get(wanted.id), null)
      for (const other of others) assert.deepEqual(await harness.record(other.id), other)
    },
  },
}
