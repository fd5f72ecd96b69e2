/** Listing: newest first, page by page, right while jobs come and go. */
import assert from 'node:assert/strict'
import type { JobId } from '../../job/ids.ts'
import type { NewJob } from '../../job/record.ts'
import type { JobFilter } from '../store.ts'
import type { Topic } from './suite.ts'
import {
  CANCELLED,
  COMPLETED,
  DEAD,
  idsOf,
  MINUTE_MS,
  newJob,
  newJobId,
  newJobs,
  sameIds,
  type Harness,
} from './support.ts'

/** Reads every page; `between` happens after each. */
async function readPages(
  harness: Harness,
  limit: number,
  filter: JobFilter = {},
  between: (page: number) => Promise<unknown> = async () => undefined,
): Promise<JobId[]> {
  const seen: JobId[] = []
  let after: JobId | null = null
  for (let page = 0; page < 100; page++) {
    const { jobs, next }: Awaited<ReturnType<typeof harness.store.admin.list>> =
      await harness.store.admin.list({
        ...filter,
        limit,
        after,
      })
    assert.ok(jobs.length <= limit, 'a page has no more than its limit')
    seen.push(...idsOf(jobs))
    if (next === null) return seen
    after = next
    await between(page)
  }
  return assert.fail('the pages have no end')
}

async function listed(harness: Harness, filter: JobFilter): Promise<JobId[]> {
  return idsOf((await harness.store.admin.list({ ...filter, limit: 100, after: null })).jobs)
}

export const listingTopic: Topic = {
  name: 'listing',
  tests: {
    'a job that nobody knows reads as null': async (harness) => {
      assert.equal(await harness.store.admin.get(newJobId()), null)
    },
    'an empty store lists nothing': async (harness) => {
      assert.deepEqual(await harness.store.admin.list({ limit: 10, after: null }), { jobs: [], next: null })
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
      const { jobs: records, next } = await harness.store.admin.list({ limit: 10, after: null })
      assert.deepEqual(idsOf(records), idsOf(jobs).toReversed())
      assert.equal(next, null)
      for (const record of records) assert.deepEqual(record, await harness.record(record.id))
    },
    'pages are disjoint and complete': async (harness) => {
      const jobs = newJobs(23)
      await harness.enqueue(jobs)
      for (const limit of [1, 5, 22, 23, 24]) {
        assert.deepEqual(await readPages(harness, limit), idsOf(jobs).toReversed(), `in pages of ${limit}`)
      }
    },
    'pages stay right while jobs are added, moved and removed': async (harness) => {
      const jobs = newJobs(20)
      await harness.enqueue(jobs)
      const doomed = jobs.slice(3, 5)
      const worker = await harness.worker()
      const seen = await readPages(harness, 4, {}, async (page) => {
        await harness.put()
        await harness.claim(worker, { limit: 2 })
        if (page !== 0) return
        const filter = { ids: idsOf(doomed) }
        await harness.store.admin.change(filter, { type: 'cancel', reason: null }, 10, null)
        await harness.store.admin.change(filter, { type: 'discard' }, 10, null)
      })
      const stayed = jobs.filter((job) => !doomed.includes(job))
      assert.deepEqual(seen, idsOf(stayed).toReversed(), 'each job that was there all the time is seen once')
    },
    'a page goes on after an id whose job is gone': async (harness) => {
      const jobs = newJobs(6)
      await harness.enqueue(jobs)
      const { next } = await harness.store.admin.list({ limit: 3, after: null })
      assert.ok(next !== null)
      await harness.store.admin.change({ ids: [next] }, { type: 'cancel', reason: null }, 10, null)
      await harness.store.admin.change({ ids: [next] }, { type: 'discard' }, 10, null)
      const { jobs: rest } = await harness.store.admin.list({ limit: 10, after: next })
      assert.deepEqual(idsOf(rest), idsOf(jobs.slice(0, 3)).toReversed())
    },
    'a list can be narrowed by state, queue, name and id, and by all at once': async (harness) => {
      const done = await harness.finished(COMPLETED, { name: 'a', queue: 'one' })
      const dead = await harness.finished(DEAD, { name: 'b', queue: 'one' })
      const ready = await harness.put({ name: 'a', queue: 'two' })
      const scheduled = await harness.put({ name: 'b', queue: 'two', due: { inMs: MINUTE_MS } })
      const expect = async (filter: JobFilter, jobs: readonly { readonly id: JobId }[]): Promise<void> => {
        sameIds(await listed(harness, filter), idsOf(jobs), JSON.stringify(filter))
      }
      await expect({}, [done, dead, ready, scheduled])
      await expect({ states: ['completed', 'scheduled'] }, [done, scheduled])
      await expect({ states: ['running'] }, [])
      await expect({ queues: ['two'] }, [ready, scheduled])
      await expect({ queues: ['one', 'two'] }, [done, dead, ready, scheduled])
      await expect({ names: ['a'] }, [done, ready])
      await expect({ ids: [dead.id, ready.id, newJobId()] }, [dead, ready])
      await expect({ names: ['a'], queues: ['one'], states: ['completed'], ids: [done.id, dead.id] }, [done])
      await expect({ names: ['a'], queues: ['one'], states: ['dead'] }, [])
      await expect({ ids: [] }, [])
    },
    'a narrowed list has pages too': async (harness) => {
      const wanted: NewJob[] = []
      for (let count = 0; count < 9; count++) {
        const job = newJob({ name: 'wanted' })
        wanted.push(job)
        await harness.enqueue([newJob({ name: 'other' }), job, newJob({ name: 'other' })])
      }
      assert.deepEqual(await readPages(harness, 2, { names: ['wanted'] }), idsOf(wanted).toReversed())
    },
  },
}
