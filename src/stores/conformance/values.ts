/** Values that not every store can hold are refused: what is written reads back as it was. */
import assert from 'node:assert/strict'
import type { NewJob } from '../../job/record.ts'
import { each, type Topic } from './suite.ts'
import {
  cancelOne,
  COMPLETED,
  editOne,
  idsOf,
  MINUTE_MS,
  newFlushId,
  newJob,
  retention,
  settleRequest,
  uniqueWhile,
  type Harness,
} from './support.ts'

const REFUSED = { code: 'HF_STORE_REFUSED' }
/** What the greatest priority is worth where `aging` is the longest allowed. */
const LONGEST_MS = 9e14
const TOO_LONG_MS = 3.9e16

const FLAWS: readonly (readonly [flaw: string, text: string])[] = [
  ['a NUL', 'a\0b'],
  ['half a character at the start', '\udc00b'],
  ['half a character at the end', 'a\ud83d'],
]

/** Each hands the store a text and resolves when that is written. */
const TEXTS: readonly (readonly [
  where: string,
  write: (harness: Harness, text: string) => Promise<unknown>,
])[] = [
  [
    'the reason of a cancel of a waiting job',
    async (harness, text) => cancelOne(harness.store, (await harness.put()).id, text),
  ],
  [
    'the reason of a cancel of a running job',
    async (harness, text) => cancelOne(harness.store, (await harness.running()).job.id, text),
  ],
  [
    'the reason of a settle',
    async (harness, text) => harness.settle(await harness.running(), { type: 'cancelled', reason: text }),
  ],
  ['the queue of a job', (harness, queue) => harness.enqueue([newJob({ queue })])],
  ['the name of a job', (harness, name) => harness.enqueue([newJob({ name })])],
  [
    'a unique key',
    (harness, key) => harness.enqueue([newJob({ unique: uniqueWhile('unfinished', `mail.send ${key}`) })]),
  ],
  [
    'the payload of an edit',
    async (harness, text) => editOne(harness.store, (await harness.put()).id, { payload: `"${text}"` }),
  ],
  ['a queue that is paused', ({ store }, queue) => store.admin.setPaused(queue, true)],
  ['the id of a schedule', ({ store }, id) => store.schedules.put(id, { spec: '{}', nextTick: null })],
  ['the text of a schedule', ({ store }, spec) => store.schedules.put('nightly', { spec, nextTick: null })],
  [
    'the job of a schedule',
    async ({ store }, name) => {
      await store.schedules.put('nightly', { spec: '{}', nextTick: 0 })
      await store.schedules.fire('nightly', 0, MINUTE_MS, newJob({ name }))
    },
  ],
  ['the kind of a note', ({ store }, kind) => store.notes.put(kind, 'id', 'text', null)],
  ['the id of a note', ({ store }, id) => store.notes.put('worker', id, 'text', null)],
  ['the text of a note', ({ store }, text) => store.notes.put('worker', 'id', text, null)],
]

function ahead(headStartMs: number): NewJob {
  return { ...newJob(), headStartMs }
}

/** Reads, runs and prunes all that is there. */
async function useAll(harness: Harness): Promise<void> {
  const { store } = harness
  const worker = await harness.worker()
  const held = await harness.claimAll(worker)
  const settle = held.map((one) => settleRequest(one, COMPLETED))
  await harness.cycle(worker, settle, null)
  await store.admin.list({ limit: 100, after: null })
  assert.ok((await store.schedules.list()).schedules.every(({ lastTick }) => lastTick === null))
  assert.deepEqual(await store.notes.list('worker'), [])
  await store.upkeep.prune(retention({ completedMs: 0, deadMs: 0, cancelledMs: 0 }), 100)
}

export const valuesTopic: Topic = {
  name: 'values',
  tests: {
    ...each(
      TEXTS.flatMap(([where, write]) => FLAWS.map(([flaw, text]) => ({ where, write, flaw, text }))),
      ({ where, flaw }) => `${flaw} is refused in ${where}`,
      async (harness, { write, text }) => {
        await assert.rejects(write(harness, text), REFUSED)
        await useAll(harness)
      },
    ),
    'a flush with one flawed job is not written at all': async (harness) => {
      const good = newJob()
      const flush = { id: newFlushId(), jobs: [good, newJob({ queue: 'a\0' })] }
      await assert.rejects(harness.store.enqueue(flush), REFUSED)
      assert.equal(await harness.store.admin.get(good.id), null)
    },
    'the longest head start counts, and the queue goes on': async (harness) => {
      const jobs = [newJob(), ahead(LONGEST_MS), ahead(LONGEST_MS - 1)]
      await harness.enqueue(jobs)
      const [plain, first, second] = idsOf(jobs)
      const claimed = await harness.claimAll(await harness.worker())
      assert.deepEqual(
        claimed.map(({ job }) => job.id),
        [first, second, plain],
      )
      assert.equal(claimed[0]?.job.headStartMs, LONGEST_MS)
    },
    'a head start that is too long is refused, also in an edit, and the queue goes on': async (harness) => {
      const job = await harness.put()
      const headStartMs = TOO_LONG_MS
      await assert.rejects(harness.enqueue([ahead(headStartMs)]), REFUSED)
      await assert.rejects(harness.enqueue([ahead(LONGEST_MS + 1)]), REFUSED)
      await assert.rejects(editOne(harness.store, job.id, { rank: { priority: 9, headStartMs } }), REFUSED)
      await assert.rejects(harness.enqueue([ahead(NaN)]), REFUSED)
      assert.deepEqual(await harness.claimIds(await harness.worker()), [job.id])
    },
    'a count or a tick that no integer column gives back is refused, and nothing is written': async (
      harness,
    ) => {
      const { store } = harness
      for (const count of [2 ** 53, -(2 ** 53), 1e300, NaN]) {
        for (const parts of [{ priority: count }, { maxAttempts: count }, { maxCrashes: count }])
          await assert.rejects(harness.enqueue([{ ...newJob(), ...parts }]), REFUSED)
        const schedule = { spec: '{}', nextTick: count }
        await assert.rejects(store.schedules.put('nightly', schedule), REFUSED)
      }
      assert.deepEqual((await store.schedules.list()).schedules, [])
      await useAll(harness)
    },
    'a key or a note cannot be kept for longer than time goes': async (harness) => {
      const unique = { key: 'mail.send k', hold: { forMs: TOO_LONG_MS }, onConflict: 'ignore' } as const
      await assert.rejects(harness.enqueue([newJob({ unique })]), REFUSED)
      await assert.rejects(harness.store.notes.put('worker', 'id', 'text', TOO_LONG_MS), REFUSED)
      await useAll(harness)
    },
  },
}
