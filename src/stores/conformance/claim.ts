/** Claims: who gets which job, in which order, and never two the same. */
import assert from 'node:assert/strict'
import type { JobId, Token } from '../../job/ids.ts'
import { PRIORITY_LEVELS } from '../../job/rank.ts'
import type { NewJob } from '../../job/record.ts'
import type { Topic } from './suite.ts'
import {
  COMPLETED,
  idsOf,
  MINUTE_MS,
  newJob,
  newJobs,
  newWorkerId,
  RELEASE,
  retry,
  sameIds,
  SECOND_MS,
  settleRequest,
  snooze,
  type Harness,
} from './support.ts'

const { background, urgent, normal } = PRIORITY_LEVELS
const EIGHT_LEVELS_MS = (urgent - background) * MINUTE_MS

async function claimOrder(harness: Harness): Promise<JobId[]> {
  return harness.claimIds(await harness.worker(), { limit: 100 })
}

export const claimTopic: Topic = {
  name: 'claim',
  tests: {
    'jobs of equal rank go by id, whatever order they were written in': async (harness) => {
      const jobs = newJobs(5)
      await harness.enqueue(jobs.toReversed())
      assert.deepEqual(await claimOrder(harness), idsOf(jobs))
    },
    'jobs go by the time they became due': async (harness) => {
      const late = newJob()
      const early = await harness.put()
      await harness.advance(SECOND_MS)
      await harness.enqueue([late])
      assert.ok(late.id < early.id, 'the test is about rank before id')
      assert.deepEqual(await claimOrder(harness), [early.id, late.id])
    },
    'a higher priority goes first': async (harness) => {
      const jobs = [background, normal, urgent].map((priority) => newJob({ priority }))
      await harness.enqueue(jobs)
      assert.deepEqual(await claimOrder(harness), idsOf(jobs.toReversed()))
    },
    'each job gets its own payload, however large and in whatever order': async (harness) => {
      const suspect = await harness.suspect({ payload: JSON.stringify(`suspect ${'x'.repeat(4_000)}`) })
      const jobs = [urgent, background, normal, background, urgent].flatMap((priority, at) =>
        [5, 600, 10_000].map((length) =>
          newJob({ priority, payload: JSON.stringify(`${at} ${length} ${'y'.repeat(length)}`) }),
        ),
      )
      await harness.enqueue(jobs.toReversed())
      const worker = await harness.worker()
      const payloads = new Map<JobId, string>()
      // A claim may take less than there is.
      for (let claims = 0; claims < 3; claims++)
        for (const { job } of await harness.claimAll(worker, { limit: 100, suspects: true }))
          payloads.set(job.id, job.payload)
      for (const { id, payload } of jobs) assert.equal(payloads.get(id), payload)
      assert.match(payloads.get(suspect) ?? '', /^"suspect x+"$/)
    },
    'an urgent job overtakes a background one that has waited less than its head start': async (harness) => {
      const slow = await harness.put({ priority: background })
      await harness.advance(EIGHT_LEVELS_MS - 10 * SECOND_MS)
      const quick = await harness.put({ priority: urgent })
      assert.deepEqual(await claimOrder(harness), [quick.id, slow.id])
    },
    'a background job that has waited longer than the head start goes before a new urgent one': async (
      harness,
    ) => {
      const slow = await harness.put({ priority: background })
      await harness.advance(EIGHT_LEVELS_MS + 10 * SECOND_MS)
      const quick = await harness.put({ priority: urgent })
      assert.deepEqual(await claimOrder(harness), [slow.id, quick.id])
    },
    'jobs that tie after aging go by id': async (harness) => {
      // One flush has one time, so this tie is exact also on a store whose clock runs on.
      const first = newJob({ priority: urgent, due: { inMs: MINUTE_MS + EIGHT_LEVELS_MS } })
      const second = newJob({ priority: background, due: { inMs: MINUTE_MS } })
      const third = newJob({ priority: urgent, due: { inMs: MINUTE_MS + EIGHT_LEVELS_MS } })
      await harness.enqueue([third, second, first])
      await harness.passAndPromote(2 * MINUTE_MS + EIGHT_LEVELS_MS)
      assert.deepEqual(await claimOrder(harness), idsOf([first, second, third]))
    },
    'a claim that one priority could fill takes jobs of all priorities in order of rank': async (harness) => {
      // Each level is worth a minute: one job of each priority in turn, half a minute apart.
      const jobs: NewJob[] = []
      for (let count = 0; count < 9; count++) {
        jobs.push(await harness.put({ priority: count % 3 }))
        await harness.advance(MINUTE_MS / 2)
      }
      const expected = jobs
        .map(({ id, priority }, index) => ({ id, rank: index / 2 - priority }))
        .sort((a, b) => a.rank - b.rank)
      const worker = await harness.worker()
      const claimed = await harness.claimIds(worker, { limit: 3 })
      assert.deepEqual(claimed, idsOf(expected.slice(0, 3)))
      assert.deepEqual(await harness.claimIds(worker, { limit: 100 }), idsOf(expected.slice(3)))
    },
    'a claim takes no more than its limit, from the front': async (harness) => {
      const jobs = newJobs(5)
      await harness.enqueue(jobs)
      const worker = await harness.worker()
      assert.deepEqual(await harness.claimIds(worker, { limit: 2 }), idsOf(jobs.slice(0, 2)))
      assert.deepEqual(await harness.claimIds(worker, { limit: 10 }), idsOf(jobs.slice(2)))
    },
    'a claim takes from its queue only, in one lease': async (harness) => {
      const mine = [await harness.put({ queue: 'a' }), await harness.put({ queue: 'a' })]
      await harness.put({ queue: 'b' })
      const leases = await harness.claim(await harness.worker(), { queue: 'a' })
      assert.deepEqual(
        leases.map(({ queue, jobs }) => ({ queue, ids: idsOf(jobs) })),
        [{ queue: 'a', ids: idsOf(mine) }],
      )
    },
    'an empty queue and an unknown one answer alive and nothing': async (harness) => {
      const worker = await harness.worker()
      const nothing = { alive: true, settled: [], leases: [] }
      assert.deepEqual(await harness.cycle(worker, [], { queue: 'never-seen' }), nothing)
      assert.deepEqual(await harness.cycle(worker, [], null), nothing, 'nor where nothing is asked for')
    },
    'a claimed job is running under its token, with one attempt more': async (harness) => {
      const job = await harness.put({ priority: 3 })
      const worker = await harness.worker()
      await harness.advance(SECOND_MS)
      const { lease, token, job: claimed } = await harness.claimOne(worker)
      const record = await harness.inState(job.id, 'running')
      assert.deepEqual(
        {
          worker: record.worker,
          token: record.token,
          claimedAt: record.claimedAt,
          cancel: record.cancelRequested,
        },
        { worker, token, claimedAt: lease.claimedAt, cancel: false },
      )
      const { due: _due, unique: _unique, ...facts } = job
      const { createdAt, dueAt } = record
      assert.deepEqual(
        claimed,
        { ...facts, attempt: 1, crashes: 0, createdAt, dueAt },
        'the worker gets the job as given',
      )
      assert.equal(record.attempt, 1)
      assert.ok(lease.claimedAt >= createdAt + SECOND_MS, 'claimedAt is by the store’s clock')
    },
    'claims at once never hand one job to two': async (harness) => {
      const jobs = newJobs(200)
      await harness.enqueue(jobs)
      const workers = await Promise.all(Array.from({ length: 8 }, () => harness.worker()))
      const claims = workers.flatMap((worker) =>
        Array.from({ length: 6 }, () => harness.claim(worker, { limit: 7 })),
      )
      const leases = (await Promise.all(claims)).flat()
      assert.equal(
        new Set(leases.map(({ token }) => token)).size,
        leases.length,
        'every lease has a token of its own',
      )
      const rest = await claimOrder(harness)
      sameIds(
        [...leases.flatMap((lease) => idsOf(lease.jobs)), ...rest],
        idsOf(jobs),
        'each job is handed out once',
      )
    },
    'a worker that nobody registered claims nothing and is not alive': async (harness) => {
      const job = await harness.put()
      const answer = await harness.cycle(newWorkerId(), [], {})
      assert.deepEqual(answer, { alive: false, settled: [], leases: [] })
      await harness.inState(job.id, 'ready')
    },
    'a retired worker claims nothing and is not alive': async (harness) => {
      const job = await harness.put()
      const worker = await harness.worker()
      await harness.store.retire(worker)
      assert.deepEqual(await harness.cycle(worker, [], {}), { alive: false, settled: [], leases: [] })
      await harness.inState(job.id, 'ready')
    },
    'the token grows with every claim of a job': async (harness) => {
      const job = await harness.put()
      const worker = await harness.worker()
      const tokens: Token[] = []
      for (const back of [RELEASE, retry(SECOND_MS), snooze(SECOND_MS)]) {
        const held = await harness.claimOne(worker)
        tokens.push(held.token)
        await harness.settled(held, back)
        await harness.passAndPromote(2 * SECOND_MS)
      }
      tokens.push((await harness.claimOne(worker)).token)
      await harness.lose(worker)
      await harness.passAndPromote(2 * SECOND_MS)
      const last = await harness.claimOne(await harness.worker(), { suspects: true })
      assert.equal(last.job.id, job.id)
      tokens.push(last.token)
      const grown = tokens.toSorted((a, b) => a - b)
      assert.deepEqual(tokens, grown, 'after a release, a retry, a snooze and a rescue')
      assert.equal(new Set(tokens).size, 5, 'and never stays the same')
    },
    'a released job stands where it stood': async (harness) => {
      const jobs = newJobs(3)
      await harness.enqueue(jobs)
      const held = await harness.claimOne(await harness.worker())
      await harness.advance(MINUTE_MS)
      await harness.settled(held, RELEASE)
      assert.deepEqual(await claimOrder(harness), idsOf(jobs))
    },
    'a retried or snoozed job stands by its new due time': async (harness) => {
      const worker = await harness.worker()
      for (const back of [retry(MINUTE_MS), snooze(MINUTE_MS)]) {
        const first = await harness.put()
        const held = await harness.claimOne(worker)
        await harness.settled(held, back)
        await harness.advance(30 * SECOND_MS)
        const before = await harness.put()
        await harness.advance(MINUTE_MS)
        const after = await harness.put()
        await harness.store.upkeep.promote(10)
        const order = await harness.claimAll(worker)
        assert.deepEqual(
          order.map(({ job }) => job.id),
          [before.id, first.id, after.id],
          back.type,
        )
        await harness.cycle(
          worker,
          order.map((one) => settleRequest(one, COMPLETED)),
          null,
        )
      }
    },
    'a worker keeps claiming until a rescue finds its expired lease': async (harness) => {
      const worker = await harness.worker()
      const job = await harness.put()
      await harness.advance(MINUTE_MS)
      const answer = await harness.cycle(worker, [], {})
      assert.equal(answer.alive, true, 'expiry alone does not end an incarnation')
      assert.deepEqual(idsOf(answer.leases.flatMap((lease) => lease.jobs)), [job.id])
    },
  },
}
