/** History: finished jobs are kept for a time and up to a count, each final state for itself. */
import assert from 'node:assert/strict'
import type { JobId } from '../../job/ids.ts'
import type { Settlement } from '../../job/settlement.ts'
import type { Retention } from '../store.ts'
import { each, type Topic } from './suite.ts'
import {
  CANCELLED,
  cancelOne,
  changeJobs,
  COMPLETED,
  DAY_MS,
  DEAD,
  MINUTE_MS,
  retention,
  retry,
  type Harness,
} from './support.ts'

interface Kind {
  readonly settlement: Settlement
  readonly age: (ms: number) => Retention
  readonly count: (max: number) => Retention
}

const KINDS: readonly Kind[] = [
  {
    settlement: COMPLETED,
    age: (completedMs) => retention({ completedMs }),
    count: (maxCompleted) => retention({ maxCompleted }),
  },
  { settlement: DEAD, age: (deadMs) => retention({ deadMs }), count: (maxDead) => retention({ maxDead }) },
  {
    settlement: CANCELLED,
    age: (cancelledMs) => retention({ cancelledMs }),
    count: (maxCancelled) => retention({ maxCancelled }),
  },
]

/** One finished job of each kind at the same time. */
async function oneOfEach(harness: Harness): Promise<{ mine: JobId; others: JobId[] }[]> {
  const ids: JobId[] = []
  for (const { settlement } of KINDS) ids.push((await harness.finished(settlement)).id)
  return ids.map((mine) => ({ mine, others: ids.filter((id) => id !== mine) }))
}

async function isKept(harness: Harness, id: JobId): Promise<boolean> {
  return (await harness.store.admin.get(id)) !== null
}

async function finishApart(harness: Harness, settlement: Settlement, count: number): Promise<JobId[]> {
  const ids: JobId[] = []
  for (let made = 0; made < count; made++) {
    ids.push((await harness.finished(settlement)).id)
    await harness.advance(MINUTE_MS)
  }
  return ids
}

export const pruneTopic: Topic = {
  name: 'history',
  tests: {
    ...each(
      KINDS,
      ({ settlement }) => `jobs older than their retention are forgotten: ${settlement.type}`,
      async (harness, { settlement, age }) => {
        const old = await oneOfEach(harness)
        const at = KINDS.findIndex((kind) => kind.settlement === settlement)
        await harness.advance(DAY_MS)
        const young = await harness.finished(settlement)
        assert.deepEqual(await harness.store.upkeep.prune(age(DAY_MS / 2), 100), { pruned: 1 })
        const { mine, others } = old[at] ?? assert.fail('a kind of the table')
        assert.equal(await isKept(harness, mine), false, 'the old one is gone')
        assert.equal(await isKept(harness, young.id), true, 'the young one is kept')
        for (const other of others)
          assert.equal(await isKept(harness, other), true, 'other states have their own')
      },
    ),
    ...each(
      KINDS,
      ({ settlement }) => `jobs beyond their count are forgotten, the oldest first: ${settlement.type}`,
      async (harness, { settlement, count }) => {
        const ids = await finishApart(harness, settlement, 5)
        const [other] = KINDS.filter((kind) => kind.settlement !== settlement)
        const kept = await harness.finished(other?.settlement ?? retry())
        assert.deepEqual(await harness.store.upkeep.prune(count(2), 100), { pruned: 3 })
        const left = await Promise.all(ids.map((id) => isKept(harness, id)))
        assert.deepEqual(left, [false, false, false, true, true])
        assert.equal(await isKept(harness, kept.id), true, 'another state is not counted')
      },
    ),
    'the count goes by when jobs finished, not by when they were created': async (harness) => {
      const slow = await harness.running({ queue: 'slow' })
      const quick = await harness.finished(COMPLETED)
      await harness.advance(MINUTE_MS)
      await harness.settled(slow, COMPLETED)
      await harness.store.upkeep.prune(retention({ maxCompleted: 1 }), 100)
      assert.equal(await isKept(harness, quick.id), false)
      assert.equal(await isKept(harness, slow.job.id), true)
    },
    'without limits nothing is forgotten': async (harness) => {
      await oneOfEach(harness)
      await harness.advance(1_000 * DAY_MS)
      assert.deepEqual(await harness.store.upkeep.prune(retention(), 100), { pruned: 0 })
    },
    'a prune forgets no more than its limit, and can be repeated': async (harness) => {
      for (const { settlement } of KINDS) await finishApart(harness, settlement, 2)
      const everything = retention({ completedMs: 1, deadMs: 1, cancelledMs: 1 })
      const pruned: number[] = []
      for (let call = 0; call < 3; call++)
        pruned.push((await harness.store.upkeep.prune(everything, 4)).pruned)
      assert.deepEqual(pruned, [4, 2, 0])
    },
    'what is not finished is never forgotten': async (harness) => {
      const ids = [
        (await harness.running({ queue: 'a' })).job.id,
        (await harness.finished(retry(), { queue: 'b' })).id,
        (await harness.put({ due: { inMs: MINUTE_MS } })).id,
        (await harness.put()).id,
      ]
      await harness.advance(1_000 * DAY_MS)
      const nothingKept: Retention = {
        completedMs: 1,
        deadMs: 1,
        cancelledMs: 1,
        maxCompleted: 0,
        maxDead: 0,
        maxCancelled: 0,
      }
      assert.deepEqual(await harness.store.upkeep.prune(nothingKept, 100), { pruned: 0 })
      for (const id of ids) assert.equal(await isKept(harness, id), true)
    },
    'a replayed job is kept however old its death is': async (harness) => {
      const { id } = await harness.finished(DEAD)
      await harness.advance(DAY_MS)
      await changeJobs(harness.store, { ids: [id] }, { type: 'replay' }, 10, null)
      await harness.store.upkeep.prune(retention({ deadMs: 1, maxDead: 0 }), 100)
      await harness.inState(id, 'ready')
    },
    'a forgotten job is in no list and no count, and cannot be cancelled': async (harness) => {
      const { id, queue } = await harness.finished(COMPLETED)
      await harness.store.upkeep.prune(retention({ maxCompleted: 0 }), 100)
      const { jobs } = await harness.store.admin.list({ ids: [id], limit: 10, after: null })
      assert.deepEqual(jobs, [])
      const status = (await harness.store.admin.queues()).find((one) => one.queue === queue)
      assert.equal(status?.counts.completed, 0)
      assert.equal(await cancelOne(harness.store, id, null), 'missing')
    },
  },
}
