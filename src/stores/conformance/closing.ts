/** Opening and closing: open is safe to repeat, and after close nothing goes through. */
import assert from 'node:assert/strict'
import { HoldfastError } from '../../errors.ts'
import type { Store } from '../store.ts'
import type { Topic } from './suite.ts'
import { cancelOne, editOne, newFlushId, newJob, newJobId, newWorkerId, QUEUE, retention } from './support.ts'

/** Every method but open and close. */
function everyCall(store: Store): Readonly<Record<string, () => Promise<unknown>>> {
  const { upkeep, schedules, admin } = store
  const worker = newWorkerId()
  return {
    enqueue: () => store.enqueue({ id: newFlushId(), jobs: [newJob()] }),
    register: () => store.register(worker, 1_000),
    retire: () => store.retire(worker),
    cycle: () => store.cycle({ worker, settle: [], claim: { queue: QUEUE, limit: 1, suspects: false } }),
    heartbeat: () => store.heartbeat({ worker, undelivered: [] }),
    subscribe: () => store.subscribe(() => undefined),
    promote: () => upkeep.promote(1),
    rescue: () => upkeep.rescue(1),
    prune: () => upkeep.prune(retention(), 1),
    lead: () => upkeep.lead(worker, 1_000),
    put: () => schedules.put('s', { spec: '{}', nextTick: null }),
    remove: () => schedules.put('s', null),
    'schedules.list': () => schedules.list(),
    fire: () => schedules.fire('s', 1, null, newJob()),
    get: () => admin.get(newJobId()),
    'admin.list': () => admin.list({ limit: 1, after: null }),
    queues: () => admin.queues(),
    setPaused: () => admin.setPaused(QUEUE, true),
    change: () => admin.change({}, { type: 'discard' }, 1, null),
    'change of one job': () => cancelOne(store, newJobId(), null),
    'edit of one job': () => editOne(store, newJobId(), { payload: '1' }),
    deadGroups: () => admin.deadGroups({}, 1, null),
    putNote: () => store.notes.put('kind', 'id', 'text', null),
    removeNote: () => store.notes.put('kind', 'id', null, null),
    listNotes: () => store.notes.list('kind'),
  }
}

export const closingTopic: Topic = {
  name: 'opening and closing',
  tests: {
    'a store says of which kind it is': async ({ store }) => {
      assert.ok(typeof store.kind === 'string' && store.kind !== '')
    },
    'opening again is safe and keeps everything': async (harness) => {
      const held = await harness.running()
      const before = await harness.record(held.job.id)
      await harness.store.open()
      await Promise.all([harness.store.open(), harness.store.open()])
      assert.deepEqual(await harness.record(held.job.id), before)
    },
    'after close every method rejects with HF_CLOSED': async ({ store }) => {
      await store.close()
      for (const [name, call] of Object.entries(everyCall(store))) {
        await assert.rejects(
          call,
          (error) => error instanceof HoldfastError && error.code === 'HF_CLOSED',
          `${name} rejects with HF_CLOSED`,
        )
      }
    },
    'closing again is safe': async ({ store }) => {
      await store.close()
      await store.close()
      await Promise.all([store.close(), store.close()])
    },
  },
}
