/** Rescue: what is taken back from lost workers, what is left alone, and how suspects are kept apart. */
import assert from 'node:assert/strict'
import type { JobId } from '../../job/ids.ts'
import { crashDelayMs } from '../../job/retry.ts'
import type { Topic } from './suite.ts'
import {
  between,
  cancelOne,
  COMPLETED,
  idsOf,
  LEASE_MS,
  newJobs,
  NOW,
  retry,
  sameIds,
  SECOND_MS,
  uniqueWhile,
  type Harness,
} from './support.ts'

/** Every claim of a suspect, until the job has lost `crashes` workers. */
async function crash(harness: Harness, crashes: number, maxCrashes: number): Promise<JobId> {
  const { id } = await harness.put({ maxCrashes })
  for (let count = 1; count <= crashes; count++) {
    const worker = await harness.worker()
    const held = await harness.claimOne(worker, { suspects: true })
    assert.equal(held.job.crashes, count - 1, 'a claim tells the crashes so far')
    await harness.lose(worker)
    await harness.passAndPromote(crashDelayMs(count) + SECOND_MS)
  }
  return id
}

export const rescueTopic: Topic = {
  name: 'rescue',
  tests: {
    'a rescue with nothing to do takes nothing': async (harness) => {
      assert.deepEqual(await harness.rescue(), { workers: [], jobs: [] })
    },
    'a rescue takes what an expired worker held and tells all about it': async (harness) => {
      const held = await harness.running({ name: 'report.build', queue: 'slow' })
      const { workers, jobs } = await harness.lose(held.worker)
      assert.deepEqual(workers, [held.worker])
      const [rescued, ...others] = jobs
      assert.ok(rescued !== undefined && others.length === 0, 'one job was held')
      const { error, ...facts } = rescued
      assert.deepEqual(facts, {
        id: held.job.id,
        name: 'report.build',
        queue: 'slow',
        worker: held.worker,
        crashes: 1,
        to: 'scheduled',
      })
      assert.deepEqual({ kind: error?.kind, attempt: error?.attempt }, { kind: 'worker_lost', attempt: 1 })
      assert.deepEqual((await harness.record(held.job.id)).error, error, 'the record shows the same error')
    },
    'a rescued job waits out its crash delay, with its attempt handed back': async (harness) => {
      for (const crashes of [1, 2, 3]) {
        const id = await crash(harness, crashes - 1, 10)
        const held = await harness.claimOne(await harness.worker(), { suspects: true })
        assert.equal(held.job.id, id)
        await harness.advance(LEASE_MS + SECOND_MS)
        const before = await harness.now()
        await harness.rescue()
        const after = await harness.now()
        const record = await harness.inState(id, 'scheduled')
        assert.deepEqual({ attempt: record.attempt, crashes: record.crashes }, { attempt: 0, crashes })
        const delayMs = crashDelayMs(crashes)
        between(
          record.dueAt,
          before + delayMs / 2,
          after + delayMs,
          `the delay after crash ${crashes}, jittered`,
        )
        await cancelOne(harness.store, id, null)
      }
    },
    'crash delays differ, so that what died together does not come back together': async (harness) => {
      await harness.enqueue(newJobs(40))
      const worker = await harness.worker()
      await harness.claim(worker, { limit: 40 })
      await harness.lose(worker)
      const { jobs } = await harness.store.admin.list({ limit: 100, after: null })
      const dueTimes = new Set(jobs.map(({ dueAt }) => dueAt))
      assert.ok(dueTimes.size > 5, `40 jobs have ${dueTimes.size} due times`)
    },
    'leases of a retired worker are taken at once': async (harness) => {
      const held = await harness.running()
      await harness.store.retire(held.worker)
      assert.deepEqual(idsOf((await harness.rescue()).jobs), [held.job.id])
      assert.equal(await harness.settle(held, COMPLETED), 'lost')
    },
    'leases of live workers are never touched': async (harness) => {
      const lost = await harness.running()
      await harness.advance(LEASE_MS + SECOND_MS)
      const live = await harness.running()
      const before = await harness.record(live.job.id)
      assert.deepEqual(idsOf((await harness.rescue()).jobs), [lost.job.id])
      assert.deepEqual(await harness.record(live.job.id), before)
      assert.equal(await harness.settle(live, COMPLETED), 'written')
    },
    'what was settled before is left as it is': async (harness) => {
      await harness.enqueue(newJobs(3))
      const worker = await harness.worker()
      const [first, second, third] = await harness.claimAll(worker)
      assert.ok(first !== undefined && second !== undefined && third !== undefined)
      const completed = await harness.settled(first, COMPLETED)
      const retried = await harness.settled(second, retry())
      assert.deepEqual(idsOf((await harness.lose(worker)).jobs), [third.job.id])
      assert.deepEqual(await harness.record(first.job.id), completed)
      assert.deepEqual(await harness.record(second.job.id), retried)
    },
    'a job is taken back once, however many rescuers there are': async (harness) => {
      await harness.enqueue(newJobs(30))
      const workers = await Promise.all([harness.worker(), harness.worker(), harness.worker()])
      const held = await Promise.all(workers.map((worker) => harness.claimIds(worker, { limit: 10 })))
      await harness.advance(LEASE_MS + SECOND_MS)
      const answers = await Promise.all(Array.from({ length: 6 }, () => harness.rescue()))
      sameIds(
        answers.flatMap(({ jobs }) => idsOf(jobs)),
        held.flat(),
        'each job once',
      )
      for (const id of held.flat()) assert.equal((await harness.record(id)).crashes, 1)
    },
    'a bounded rescue is finished by repeating it': async (harness) => {
      await harness.enqueue(newJobs(12))
      const held: JobId[] = []
      for (let count = 0; count < 6; count++) {
        held.push(...(await harness.claimIds(await harness.worker(), { limit: 2 })))
      }
      await harness.advance(LEASE_MS + SECOND_MS)
      const rescued: JobId[] = []
      let calls = 0
      for (; calls < 20 && rescued.length < held.length; calls++) {
        rescued.push(...idsOf((await harness.rescue(2)).jobs))
      }
      sameIds(rescued, held, 'all jobs are rescued in the end')
      assert.ok(calls > 1, 'not all of them in the first call')
    },
    'an expired worker that held nothing is forgotten too': async (harness) => {
      const worker = await harness.worker()
      await harness.lose(worker)
      assert.deepEqual(await harness.cycle(worker, [], {}), { alive: false, settled: [], leases: [] })
    },
    'a suspect is handed out only where suspects are asked for, beside the plain jobs': async (harness) => {
      const suspect = await harness.suspect()
      const plain = newJobs(2)
      await harness.enqueue(plain)
      const worker = await harness.worker()
      const without = await harness.claim(worker)
      assert.deepEqual(
        without.map(({ jobs }) => idsOf(jobs)),
        [idsOf(plain)],
        'plain jobs are not held up by it',
      )
      const more = newJobs(2)
      await harness.enqueue(more)
      const leases = await harness.claim(worker, { suspects: true })
      const batches = leases.map(({ jobs }) => idsOf(jobs)).toSorted((a, b) => a.length - b.length)
      assert.deepEqual(batches, [[suspect], idsOf(more)], 'the suspect has a lease of its own')
      assert.notEqual(leases[0]?.token, leases[1]?.token)
    },
    'a claim takes one suspect at most': async (harness) => {
      await harness.enqueue(newJobs(3))
      const lost = await harness.worker()
      const ids = await harness.claimIds(lost)
      await harness.lose(lost)
      await harness.passAndPromote(2 * SECOND_MS)
      const worker = await harness.worker()
      const taken: JobId[] = []
      for (let count = 1; count <= 3; count++) {
        taken.push(...(await harness.claimIds(worker, { suspects: true })))
        assert.equal(taken.length, count, 'one a claim')
      }
      sameIds(taken, ids, 'and all of them in the end')
    },
    'a suspect stays one when it is retried': async (harness) => {
      const id = await harness.suspect()
      const worker = await harness.worker()
      await harness.settled(await harness.claimOne(worker, { suspects: true }), retry(SECOND_MS))
      await harness.passAndPromote(2 * SECOND_MS)
      assert.deepEqual(await harness.claim(worker), [])
      assert.deepEqual(await harness.claimIds(worker, { suspects: true }), [id])
    },
    'the limit of a claim counts its suspect': async (harness) => {
      await harness.suspect()
      await harness.enqueue(newJobs(3))
      const ids = await harness.claimIds(await harness.worker(), { suspects: true, limit: 2 })
      assert.equal(ids.length, 2)
    },
    'a suspect that completes is like any other': async (harness) => {
      const id = await harness.suspect()
      const held = await harness.claimOne(await harness.worker(), { suspects: true })
      assert.deepEqual({ attempt: held.job.attempt, crashes: held.job.crashes }, { attempt: 1, crashes: 1 })
      await harness.settled(held, COMPLETED)
      assert.equal((await harness.inState(id, 'completed')).crashes, 1)
    },
    'a job that has lost more workers than it may is dead': async (harness) => {
      const id = await crash(harness, 2, 2)
      assert.equal((await harness.inState(id, 'ready')).crashes, 2, 'at the limit it may still run')
      const worker = await harness.worker()
      await harness.claimOne(worker, { suspects: true })
      const { jobs } = await harness.lose(worker)
      assert.deepEqual(
        jobs.map((job) => [job.id, job.to, job.crashes, job.error?.kind]),
        [[id, 'dead', 3, 'worker_lost']],
      )
      const record = await harness.inState(id, 'dead')
      assert.deepEqual(
        { kind: record.error.kind, crashes: record.crashes },
        { kind: 'worker_lost', crashes: 3 },
      )
    },
    'a job that may lose no worker is dead at the first, and its key is free': async (harness) => {
      const unique = uniqueWhile('unfinished')
      const held = await harness.running({ maxCrashes: 0, unique })
      const { jobs } = await harness.lose(held.worker)
      assert.equal(jobs[0]?.to, 'dead')
      const record = await harness.inState(held.job.id, 'dead')
      const now = await harness.now()
      between(record.finishedAt, held.lease.claimedAt + LEASE_MS, now, 'finishedAt is the time of the rescue')
      await harness.put({ unique, due: NOW })
    },
  },
}
