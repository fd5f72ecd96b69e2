/** Listing: newest first, page by page, right while jobs come and go. */
import assert from 'node:assert/strict'
import { makeIds, type JobId } from '../../job/ids.ts'
import type { NewJob } from '../../job/record.ts'
import { systemRandom } from '../../std/random.ts'
import type { JobFilter } from '../store.ts'
import { changeAll, listed, recordsOf } from './pages.ts'
import type { Topic } from './suite.ts'
import {
  CANCELLED,
  COMPLETED,
  DAY_MS,
  DEAD,
  editOne,
  idsOf,
  MINUTE_MS,
  newJob,
  newJobId,
  newJobs,
  RELEASE,
  retry,
  sameIds,
  SECOND_MS,
  settleRequest,
  type Harness,
} from './support.ts'

function withTags(...tags: string[]): Partial<NewJob> {
  return { envelope: { correlationId: null, tags, metadata: {}, retry: null, timeoutMs: null } }
}

async function expectListed(
  harness: Harness,
  filter: JobFilter,
  jobs: readonly { readonly id: JobId }[],
): Promise<void> {
  sameIds(await listed(harness, filter), idsOf(jobs), JSON.stringify(filter))
}

/** Moves jobs through all their states: claims some, and settles those of the round before. */
async function keepMoving(harness: Harness, rounds: number): Promise<() => Promise<void>> {
  const worker = await harness.worker(rounds * MINUTE_MS)
  let held = await harness.claimAll(worker, { limit: 3 })
  const ways = [RELEASE, retry(SECOND_MS), COMPLETED, DEAD, CANCELLED]
  let turn = 0
  return async () => {
    const settles = held.map((one) => settleRequest(one, ways[turn++ % ways.length] ?? RELEASE))
    await harness.cycle(worker, settles, null)
    await harness.passAndPromote(2 * SECOND_MS)
    held = await harness.claimAll(worker, { limit: 3 })
  }
}

export const listingTopic: Topic = {
  name: 'listing',
  tests: {
    'a job that nobody knows reads as null': async (harness) => {
      assert.equal(await harness.store.admin.get(newJobId()), null)
    },
    'an empty store lists nothing': async (harness) => {
      const page = await harness.store.admin.list({ limit: 10, after: null })
      assert.deepEqual(page, { jobs: [], next: null, looked: 0 })
    },
    'jobs are listed newest first, each as it reads alone': async (harness) => {
      const jobs = [
        await harness.finished(COMPLETED),
        await harness.finished(DEAD),
        await harness.finished(CANCELLED),
        (await harness.running()).job,
        await harness.put({ due: { inMs: MINUTE_MS } }),
        await harness.put(),
      ]
      const records = await recordsOf(harness, {})
      assert.deepEqual(idsOf(records), idsOf(jobs).toReversed())
      for (const record of records) assert.deepEqual(record, await harness.record(record.id))
    },
    'pages are disjoint and complete': async (harness) => {
      const jobs = newJobs(23)
      await harness.enqueue(jobs)
      for (const limit of [1, 5, 22, 23, 24]) {
        const seen = await listed(harness, {}, { limit })
        assert.deepEqual(seen, idsOf(jobs).toReversed(), `in pages of ${limit}`)
      }
    },
    'jobs are in order of id, in whatever order they were enqueued': async (harness) => {
      const jobs = newJobs(30)
      const ids = idsOf(jobs).toReversed()
      const mixed = jobs.map((_, index) => jobs[(index * 7) % 30] as NewJob)
      for (const part of [mixed.slice(0, 10), mixed.slice(10, 11), mixed.slice(11)])
        await harness.enqueue(part)
      assert.deepEqual(await listed(harness, {}, { limit: 4 }), ids)
      assert.deepEqual(await listed(harness, { states: ['ready'] }, { limit: 4 }), ids)
    },
    'however many jobs are asked for by their ids, each is listed once': async (harness) => {
      const jobs = newJobs(120)
      await harness.enqueue(jobs)
      const ids = idsOf(jobs)
      assert.deepEqual(await listed(harness, { ids: [...ids, ...ids] }, { limit: 100 }), ids.toReversed())
      assert.deepEqual(await listed(harness, { ids }, { limit: 7 }), ids.toReversed())
    },
    'ids of any age are listed in order, and found by how they begin': async (harness) => {
      const times = [
        5_000,
        1_000,
        DAY_MS,
        1_001,
        1_700_000_000_000,
        1_700_000_000_063,
        4_000_000_000_000,
        1_100,
      ]
      const jobs = times.map((ms) => newJob({ id: makeIds({ now: () => ms }, systemRandom).job() }))
      const later = [90_000, 91_000, 2 * DAY_MS].map((ms) =>
        newJob({ id: makeIds({ now: () => ms }, systemRandom).job() }),
      )
      await harness.enqueue(jobs)
      await harness.enqueue(later)
      const ids = idsOf([...jobs, ...later])
        .toSorted()
        .toReversed()
      assert.deepEqual(await listed(harness, {}, { limit: 3 }), ids)
      const old = ids.filter((id) => id.startsWith('00000000-'))
      assert.equal(old.length, 4)
      assert.deepEqual(await listed(harness, { idPrefix: '00000000-' }, { limit: 2 }), old)
      assert.deepEqual(
        await changeAll(harness, { idPrefix: '00000000-' }, { type: 'cancel', reason: null }, 3),
        {
          changed: 4,
          skipped: 0,
        },
      )
    },
    'pages go through jobs that were completed together': async (harness) => {
      const jobs = newJobs(7)
      await harness.enqueue(jobs)
      const held = await harness.claimAll(await harness.worker())
      const [first] = held
      assert.ok(first !== undefined)
      const requests = held.map((one) => settleRequest(one, COMPLETED))
      await harness.cycle(first.worker, requests, null)
      assert.deepEqual(
        await listed(harness, { states: ['completed'] }, { limit: 2 }),
        idsOf(jobs).toReversed(),
      )
    },
    'pages stay right while jobs are added, moved and removed': async (harness) => {
      const jobs = newJobs(20)
      await harness.enqueue(jobs)
      const doomed = jobs.slice(3, 5)
      const worker = await harness.worker()
      const between = async (page: number): Promise<void> => {
        await harness.put()
        await harness.claim(worker, { limit: 2 })
        if (page !== 0) return
        const filter = { ids: idsOf(doomed) }
        await changeAll(harness, filter, { type: 'cancel', reason: null })
        await changeAll(harness, filter, { type: 'discard' })
      }
      const seen = await listed(harness, {}, { limit: 4, between })
      const stayed = jobs.filter((job) => !doomed.includes(job))
      assert.deepEqual(seen, idsOf(stayed).toReversed(), 'each job that was there all the time is seen once')
    },
    'every job that matches all the time is listed once while all jobs move': async (harness) => {
      const moving = newJobs(12)
      const kept = newJobs(12, { due: { inMs: 10 * MINUTE_MS } })
      await harness.enqueue(moving.flatMap((job, index) => [job, kept[index] as NewJob]))
      const move = await keepMoving(harness, 60)
      const unfiltered = await listed(harness, {}, { limit: 3, between: move })
      sameIds(unfiltered, idsOf([...moving, ...kept]), 'all jobs')
      assert.deepEqual(unfiltered, unfiltered.toSorted().toReversed())
      const scheduled = await listed(harness, { states: ['scheduled'] }, { limit: 2, between: move })
      assert.equal(new Set(scheduled).size, scheduled.length, 'none is listed twice')
      const found = new Set(scheduled)
      sameIds(idsOf(kept.filter(({ id }) => found.has(id))), idsOf(kept), 'all that stayed scheduled')
    },
    'a page goes on after an id whose job is gone': async (harness) => {
      const jobs = newJobs(6)
      await harness.enqueue(jobs)
      const { next } = await harness.store.admin.list({ limit: 3, after: null })
      assert.ok(next !== null)
      await changeAll(harness, { ids: [next] }, { type: 'cancel', reason: null })
      await changeAll(harness, { ids: [next] }, { type: 'discard' })
      const { jobs: rest } = await harness.store.admin.list({ limit: 10, after: next })
      assert.deepEqual(idsOf(rest), idsOf(jobs.slice(0, 3)).toReversed())
    },
    'a cursor that no page returned is refused, and nothing is changed': async (harness) => {
      const dead = await harness.finished(DEAD)
      const after = 'not-a-cursor' as JobId
      const { admin } = harness.store
      const refused = { code: 'HF_BAD_CURSOR' }
      await assert.rejects(async () => admin.list({ limit: 10, after }), refused)
      await assert.rejects(async () => admin.deadGroups({}, 10, after), refused)
      await assert.rejects(async () => admin.change({}, { type: 'discard' }, 10, after), refused)
      await harness.inState(dead.id, 'dead')
    },
    'a list can be narrowed by state, queue, name and id, and by all at once': async (harness) => {
      const done = await harness.finished(COMPLETED, { name: 'a', queue: 'one' })
      const dead = await harness.finished(DEAD, { name: 'b', queue: 'one' })
      const ready = await harness.put({ name: 'a', queue: 'two' })
      const scheduled = await harness.put({ name: 'b', queue: 'two', due: { inMs: MINUTE_MS } })
      const expect = expectListed.bind(null, harness)
      await expect({}, [done, dead, ready, scheduled])
      await expect({ states: ['completed', 'scheduled'] }, [done, scheduled])
      await expect({ states: ['running'] }, [])
      await expect({ states: ['blocked'] }, [])
      await expect({ queues: ['two'] }, [ready, scheduled])
      await expect({ queues: ['one', 'two'] }, [done, dead, ready, scheduled])
      await expect({ queues: ['one'], states: ['ready', 'dead'] }, [dead])
      await expect({ names: ['a'] }, [done, ready])
      await expect({ ids: [dead.id, ready.id, newJobId()] }, [dead, ready])
      await expect({ names: ['a'], queues: ['one'], states: ['completed'], ids: [done.id, dead.id] }, [done])
      await expect({ names: ['a'], queues: ['one'], states: ['dead'] }, [])
      await expect({ ids: [] }, [])
      await expect({ states: [] }, [])
      await expect({ queues: [] }, [])
      await expect({ names: [] }, [])
    },
    'names and queues are compared as a whole, whatever characters they have': async (harness) => {
      const odd = await harness.put({ name: 'a"b\\', queue: 'q,"x",' })
      const other = await harness.put({ name: 'a', queue: 'x' })
      const wide = await harness.put({ name: 'größe/🛠️', queue: 'x' })
      const expect = expectListed.bind(null, harness)
      await expect({ names: ['a"b\\'] }, [odd])
      await expect({ names: ['a'] }, [other])
      await expect({ names: ['größe/🛠️', 'b\\'] }, [wide])
      await expect({ queues: ['x'] }, [other, wide])
      await expect({ queues: ['q,"x",'], states: ['ready'] }, [odd])
    },
    'jobs are found by their tags': async (harness) => {
      const both = await harness.put(withTags('red', 'blue'))
      const blue = await harness.put({ ...withTags('blue'), due: { inMs: MINUTE_MS } })
      const odd = await harness.put(withTags('a "b" \\ ü'))
      const named = await harness.put({ name: 'red', payload: '["red"]' })
      const dead = await harness.finished(DEAD, { queue: 'other', ...withTags('red') })
      const expect = expectListed.bind(null, harness)
      await expect({ tags: ['red'] }, [both, dead])
      await expect({ tags: ['red', 'blue'] }, [both, blue, dead])
      await expect({ tags: ['a "b" \\ ü'] }, [odd])
      await expect({ tags: ['re'] }, [])
      await expect({ tags: [] }, [])
      await expect({ tags: ['red'], states: ['dead'] }, [dead])
      await expect({ tags: ['blue'], states: ['scheduled', 'ready'] }, [both, blue])
      await expect({ names: ['red'] }, [named])
    },
    "jobs are found by when they were created, by the store's clock": async (harness) => {
      const early = await harness.put()
      await harness.advance(10 * MINUTE_MS)
      const between = await harness.now()
      await harness.advance(10 * MINUTE_MS)
      const late = await harness.finished(COMPLETED, { queue: 'late' })
      const { createdAt } = await harness.record(late.id)
      const expect = expectListed.bind(null, harness)
      await expect({ createdFrom: createdAt }, [late])
      await expect({ createdBefore: between }, [early])
      await expect({ createdFrom: between + 1, createdBefore: createdAt }, [])
      await expect({ createdFrom: createdAt, states: ['completed'] }, [late])
      await expect({ createdFrom: between + 1, createdBefore: createdAt + 1, queues: ['late'] }, [late])
    },
    'a change of a waiting job does not change when it was created': async (harness) => {
      const job = await harness.put({ due: { inMs: 60 * MINUTE_MS } })
      const { createdAt } = await harness.record(job.id)
      await harness.advance(10 * MINUTE_MS)
      await editOne(harness.store, job.id, { payload: '1', rank: { priority: 1, headStartMs: 1 } })
      await expectListed(harness, { createdBefore: createdAt + 1 }, [job])
    },
    'jobs are found by how their id begins': async (harness) => {
      const jobs = newJobs(6)
      await harness.enqueue(jobs)
      const [first] = jobs as [NewJob]
      for (const length of [1, 7, 8, 9, 13, 14, 15, 24, 35, 36]) {
        const idPrefix = first.id.slice(0, length)
        const expected = jobs.filter(({ id }) => id.startsWith(idPrefix))
        await expectListed(harness, { idPrefix }, expected)
        await expectListed(harness, { idPrefix, states: ['ready'], queues: [first.queue] }, expected)
      }
      await expectListed(harness, { idPrefix: '' }, jobs)
      for (const idPrefix of [first.id.toUpperCase(), `${first.id}0`, 'x', first.id.replaceAll('-', '')])
        await expectListed(harness, { idPrefix }, [])
    },
    'a narrowed list has pages too': async (harness) => {
      const wanted: NewJob[] = []
      for (let count = 0; count < 9; count++) {
        const job = newJob({ name: 'wanted' })
        wanted.push(job)
        await harness.enqueue([newJob({ name: 'other' }), job, newJob({ name: 'other' })])
      }
      assert.deepEqual(await listed(harness, { names: ['wanted'] }, { limit: 2 }), idsOf(wanted).toReversed())
    },
  },
}
