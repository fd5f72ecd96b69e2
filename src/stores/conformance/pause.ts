/** Paused queues: once a pause is answered, no claim takes from the queue until it is resumed. */
import assert from 'node:assert/strict'
import type { Topic } from './suite.ts'
import {
  COMPLETED,
  idsOf,
  newJobs,
  QUEUE,
  RELEASE,
  SECOND_MS,
  settleRequest,
  type Harness,
} from './support.ts'

async function isPaused(harness: Harness, queue: string): Promise<boolean | undefined> {
  return (await harness.store.admin.queues()).find((status) => status.queue === queue)?.paused
}

export const pauseTopic: Topic = {
  name: 'pause',
  tests: {
    'a paused queue hands out nothing until it is resumed': async (harness) => {
      const jobs = newJobs(3)
      await harness.enqueue(jobs)
      const worker = await harness.worker()
      await harness.store.admin.setPaused(QUEUE, true)
      assert.equal(await isPaused(harness, QUEUE), true)
      assert.deepEqual(await harness.cycle(worker, [], {}), { alive: true, settled: [], leases: [] })
      await harness.put()
      assert.deepEqual(await harness.claim(worker), [], 'nor what was enqueued since')
      await harness.store.admin.setPaused(QUEUE, false)
      assert.equal(await isPaused(harness, QUEUE), false)
      assert.deepEqual((await harness.claimIds(worker)).slice(0, 3), idsOf(jobs))
    },
    'no claim that starts after the pause was answered takes anything': async (harness) => {
      await harness.enqueue(newJobs(100))
      const workers = await Promise.all(Array.from({ length: 4 }, () => harness.worker()))
      const claims = (): Promise<unknown>[] => workers.map((worker) => harness.claim(worker, { limit: 5 }))
      const [, ...before] = await Promise.all([harness.store.admin.setPaused(QUEUE, true), ...claims()])
      assert.equal(before.length, 4)
      const after = await Promise.all([...claims(), ...claims()])
      assert.deepEqual(after.flat(), [])
    },
    'a heartbeat tells a worker which queues are paused': async (harness) => {
      const held = await harness.running()
      const paused = async (): Promise<readonly string[]> =>
        (await harness.store.heartbeat({ worker: held.worker, undelivered: [] })).paused
      assert.deepEqual(await paused(), [])
      await harness.store.admin.setPaused(QUEUE, true)
      assert.deepEqual(await paused(), [QUEUE])
      await harness.store.admin.setPaused(QUEUE, false)
      assert.deepEqual(await paused(), [])
    },
    'what is given back while the queue is paused stays ready, with its attempt handed back': async (
      harness,
    ) => {
      const held = await harness.running()
      await harness.store.admin.setPaused(QUEUE, true)
      await harness.settled(held, RELEASE)
      assert.equal((await harness.inState(held.job.id, 'ready')).attempt, 0)
      assert.deepEqual(await harness.claim(held.worker), [])
    },
    'other queues go on': async (harness) => {
      const job = await harness.put({ queue: 'other' })
      await harness.store.admin.setPaused(QUEUE, true)
      assert.deepEqual(await harness.claimIds(await harness.worker(), { queue: 'other' }), [job.id])
    },
    'what runs may still be settled, and the same call claims nothing': async (harness) => {
      const held = await harness.running()
      await harness.put()
      await harness.store.admin.setPaused(QUEUE, true)
      const answer = await harness.cycle(held.worker, [settleRequest(held, COMPLETED)], {})
      assert.deepEqual(answer, { alive: true, settled: ['written'], leases: [] })
    },
    'suspects are held too': async (harness) => {
      const id = await harness.suspect()
      await harness.store.admin.setPaused(QUEUE, true)
      const worker = await harness.worker()
      assert.deepEqual(await harness.claim(worker, { suspects: true }), [])
      await harness.store.admin.setPaused(QUEUE, false)
      assert.deepEqual(await harness.claimIds(worker, { suspects: true }), [id])
    },
    'a queue can be paused before it has ever had a job': async (harness) => {
      await harness.store.admin.setPaused('tomorrow', true)
      assert.equal(await isPaused(harness, 'tomorrow'), true, 'it is listed')
      await harness.put({ queue: 'tomorrow' })
      assert.deepEqual(await harness.claim(await harness.worker(), { queue: 'tomorrow' }), [])
    },
    'a pause survives opening again, time, and upkeep': async (harness) => {
      const job = await harness.put({ due: { inMs: SECOND_MS } })
      await harness.store.admin.setPaused(QUEUE, true)
      await harness.store.open()
      await harness.passAndPromote(86_400_000)
      await harness.rescue()
      assert.equal(await isPaused(harness, QUEUE), true)
      assert.deepEqual(await harness.claim(await harness.worker()), [])
      assert.equal((await harness.record(job.id)).state, 'ready', 'jobs are promoted all the same')
    },
    'pausing and resuming are safe to repeat': async (harness) => {
      const job = await harness.put()
      for (const paused of [true, true, false, false]) await harness.store.admin.setPaused(QUEUE, paused)
      assert.deepEqual(await harness.claimIds(await harness.worker()), [job.id])
    },
  },
}
