/** Queues: what they count is what a recount finds. */
import assert from 'node:assert/strict'
import type { Settlement } from '../../job/settlement.ts'
import { JOB_STATES, type JobState } from '../../job/states.ts'
import type { QueueStatus } from '../store.ts'
import { changeAll, recordsOf } from './pages.ts'
import type { Topic } from './suite.ts'
import {
  CANCELLED,
  changeJobs,
  COMPLETED,
  DEAD,
  editOne,
  MINUTE_MS,
  newJobs,
  QUEUE,
  RELEASE,
  retention,
  retry,
  SECOND_MS,
  settleRequest,
  snooze,
  type Harness,
} from './support.ts'

const NONE = Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>

async function statusOf(harness: Harness, queue: string): Promise<QueueStatus> {
  const status = (await harness.store.admin.queues()).find((one) => one.queue === queue)
  assert.ok(status !== undefined, `queue ${queue} is listed`)
  return status
}

/** Counts each queue's jobs one by one and compares. */
async function recount(harness: Harness, when: string): Promise<void> {
  const jobs = await recordsOf(harness, {}, { limit: 1_000 })
  for (const { queue, counts, oldestReadyAt } of await harness.store.admin.queues()) {
    const mine = jobs.filter((job) => job.queue === queue)
    const expected = { ...NONE }
    for (const job of mine) expected[job.state]++
    assert.deepEqual(counts, expected, `${queue}, ${when}`)
    const readyAt = mine.filter(({ state }) => state === 'ready').map(({ dueAt }) => dueAt)
    assert.equal(
      oldestReadyAt,
      readyAt.length === 0 ? null : Math.min(...readyAt),
      `oldest of ${queue}, ${when}`,
    )
  }
}

/** A little of everything that moves jobs, the same each time. */
async function workload(harness: Harness, queue: string, round: number): Promise<void> {
  await harness.enqueue(newJobs(6 + round, { queue, priority: round % 3 }))
  await harness.enqueue(newJobs(2, { queue, due: { inMs: (1 + round) * MINUTE_MS } }))
  const worker = await harness.worker()
  const held = await harness.claimAll(worker, { queue, limit: 5, suspects: round % 2 === 0 })
  const outcomes: Settlement[] = [COMPLETED, retry(MINUTE_MS), DEAD, snooze(MINUTE_MS), RELEASE, CANCELLED]
  const requests = held
    .slice(round % 2)
    .map((one, n) => settleRequest(one, outcomes[(n + round) % 6] ?? RELEASE))
  await harness.cycle(worker, requests, null)
  // All of a claim alike: a store may have a shorter way for that.
  const alike = await harness.claimAll(worker, { queue, limit: 2, suspects: false })
  const completed = alike.map((one) => settleRequest(one, COMPLETED))
  await harness.cycle(worker, completed, null)
  if (round % 3 === 1) await harness.lose()
  await harness.passAndPromote(40 * SECOND_MS)
}

export const queuesTopic: Topic = {
  name: 'queues and counts',
  tests: {
    'a store without jobs has no queues': async (harness) => {
      assert.deepEqual(await harness.store.admin.queues(), [])
    },
    'counts follow a job through its states': async (harness) => {
      await harness.put()
      const expect = async (counts: Partial<Record<JobState, number>>): Promise<void> => {
        assert.deepEqual((await statusOf(harness, QUEUE)).counts, { ...NONE, ...counts })
      }
      await expect({ ready: 1 })
      const held = await harness.claimOne(await harness.worker())
      await expect({ running: 1 })
      await harness.settled(held, retry())
      await expect({ scheduled: 1 })
      await harness.passAndPromote(2 * MINUTE_MS)
      await expect({ ready: 1 })
      await harness.settled(await harness.claimOne(await harness.worker()), DEAD)
      await expect({ dead: 1 })
    },
    'counts equal a recount, whatever has happened': async (harness) => {
      for (let round = 0; round < 8; round++) {
        await workload(harness, ['a', 'b', 'c'][round % 3] ?? 'a', round)
        await recount(harness, `after round ${round}`)
      }
      await changeAll(harness, { states: ['dead'] }, { type: 'replay' }, 3)
      await recount(harness, 'after a replay')
      await changeAll(harness, { queues: ['a'] }, { type: 'cancel', reason: null })
      await recount(harness, 'after a cancel of many')
      await harness.store.upkeep.prune(retention({ maxCompleted: 1, maxCancelled: 2 }), 5)
      await recount(harness, 'after a prune')
      await changeAll(harness, {}, { type: 'discard' })
      await recount(harness, 'after a discard')
    },
    'a queue that has ever had a job is listed, also when none is left': async (harness) => {
      const { id } = await harness.finished(COMPLETED, { queue: 'once' })
      await changeJobs(harness.store, { ids: [id] }, { type: 'discard' }, 10, null)
      const status = await statusOf(harness, 'once')
      assert.deepEqual(status, { queue: 'once', paused: false, counts: NONE, oldestReadyAt: null })
    },
    'a queue is listed after its jobs were forgotten by a settle or a prune': async (harness) => {
      const held = await harness.running({ queue: 'settled' })
      const settle = { ...settleRequest(held, COMPLETED), forget: true }
      assert.deepEqual((await harness.cycle(held.worker, [settle], null)).settled, ['written'])
      await harness.finished(DEAD, { queue: 'pruned' })
      await harness.store.upkeep.prune(retention({ maxDead: 0 }), 10)
      for (const queue of ['settled', 'pruned']) {
        const status = await statusOf(harness, queue)
        assert.deepEqual(status, { queue, paused: false, counts: NONE, oldestReadyAt: null })
      }
    },
    'a paused queue is listed before its first job': async (harness) => {
      await harness.store.admin.setPaused('soon', true)
      const status = await statusOf(harness, 'soon')
      assert.deepEqual(status, { queue: 'soon', paused: true, counts: NONE, oldestReadyAt: null })
    },
    'the oldest ready job is found in any mix of priorities, and follows edits and claims': async (
      harness,
    ) => {
      const oldest = async (): Promise<number | null> => (await statusOf(harness, QUEUE)).oldestReadyAt
      const dues: number[] = []
      for (const priority of [5, 0, 9, 3]) {
        const { id } = await harness.put({ priority })
        dues.push((await harness.record(id)).dueAt)
        await harness.advance(SECOND_MS)
      }
      assert.equal(await oldest(), Math.min(...dues))
      const worker = await harness.worker()
      for (let left = 4; left > 0; left--) {
        const { job } = await harness.claimOne(worker)
        dues.splice(dues.indexOf(job.dueAt), 1)
        assert.equal(await oldest(), dues.length === 0 ? null : Math.min(...dues))
      }
      const low = await harness.put({ priority: 9 })
      await harness.advance(MINUTE_MS)
      await harness.put({ priority: 9 })
      await editOne(harness.store, low.id, { rank: { priority: 0, headStartMs: 0 } })
      assert.equal(await oldest(), (await harness.record(low.id)).dueAt)
    },
    'the oldest ready job is the one that became due first, whatever its priority': async (harness) => {
      const first = await harness.put({ priority: 0 })
      await harness.advance(MINUTE_MS)
      await harness.put({ priority: 9 })
      const { dueAt } = await harness.record(first.id)
      assert.equal((await statusOf(harness, QUEUE)).oldestReadyAt, dueAt)
      await harness.put({ queue: 'later', due: { inMs: MINUTE_MS } })
      assert.equal((await statusOf(harness, 'later')).oldestReadyAt, null, 'a scheduled job is not ready')
      await harness.passAndPromote(2 * MINUTE_MS)
      const { oldestReadyAt } = await statusOf(harness, 'later')
      assert.ok(oldestReadyAt !== null && oldestReadyAt > dueAt, 'it counts from when it became due')
    },
  },
}
