/** Unique keys: how long a job holds its key, and that the key is free in the same step in which the job lets go. */
import assert from 'node:assert/strict'
import type { JobId } from '../../job/ids.ts'
import type { Settlement } from '../../job/settlement.ts'
import type { UniqueClaim } from '../../job/unique.ts'
import { changeAll } from './pages.ts'
import { each, type Topic } from './suite.ts'
import {
  CANCELLED,
  cancelOne,
  changeJobs,
  COMPLETED,
  DEAD,
  MINUTE_MS,
  newFlushId,
  newJob,
  RELEASE,
  retry,
  SECOND_MS,
  settleRequest,
  snooze,
  uniqueWhile,
  type Harness,
} from './support.ts'

const KEY = 'mail.send k1'
const WHILE_UNFINISHED = uniqueWhile('unfinished', KEY)
const WHILE_READY = uniqueWhile('ready', KEY)
const FOR_AN_HOUR: UniqueClaim = { key: KEY, hold: { forMs: 60 * MINUTE_MS }, onConflict: 'ignore' }
const RULES = [WHILE_UNFINISHED, WHILE_READY, FOR_AN_HOUR]

function ruleName({ hold }: UniqueClaim): string {
  return 'forMs' in hold ? 'for a time' : `while ${hold.while}`
}

/** The key is taken by `holder`: an enqueue with it writes nothing. */
async function isHeldBy(
  harness: Harness,
  holder: JobId,
  unique: UniqueClaim,
  message: string,
): Promise<void> {
  const second = newJob({ unique, payload: '"second"' })
  const before = await harness.store.admin.get(holder)
  assert.deepEqual(await harness.enqueue([second]), [{ id: holder, outcome: 'duplicate' }], message)
  assert.equal(await harness.store.admin.get(second.id), null, 'a duplicate is not written')
  assert.deepEqual(await harness.store.admin.get(holder), before, 'the holder is left alone')
}

async function isFree(harness: Harness, unique: UniqueClaim, message: string): Promise<void> {
  const second = newJob({ unique })
  assert.deepEqual(await harness.enqueue([second]), [{ id: second.id, outcome: 'inserted' }], message)
}

const ENDINGS: readonly Settlement[] = [COMPLETED, DEAD, CANCELLED]
const RETURNS: readonly Settlement[] = [retry(), snooze()]

export const uniqueHoldsTopic: Topic = {
  name: 'unique keys: holding',
  tests: {
    'the key stands on the record of its job': async (harness) => {
      const job = await harness.put({ unique: WHILE_UNFINISHED })
      assert.equal((await harness.record(job.id)).uniqueKey, KEY)
    },
    ...each(
      RULES,
      (unique) => `a waiting job holds its key ${ruleName(unique)}, ready or scheduled`,
      async (harness, unique) => {
        const ready = await harness.put({ unique })
        await isHeldBy(harness, ready.id, unique, 'by a ready job')
        const other = { ...unique, key: 'mail.send k2' }
        const scheduled = await harness.put({ unique: other, due: { inMs: MINUTE_MS } })
        await isHeldBy(harness, scheduled.id, other, 'by a scheduled job')
      },
    ),
    'a released job does not free the key of the one that took it meanwhile and is claimed with it': async (
      harness,
    ) => {
      const first = await harness.running({ unique: WHILE_READY })
      const holder = await harness.put({ unique: WHILE_UNFINISHED })
      await harness.settled(first, RELEASE)
      const claimed = await harness.claimIds(await harness.worker())
      assert.deepEqual(new Set(claimed), new Set([first.job.id, holder.id]))
      await isHeldBy(harness, holder.id, WHILE_UNFINISHED, 'while it runs')
    },
    ...each(
      [WHILE_UNFINISHED, FOR_AN_HOUR],
      (unique) => `a running job holds its key ${ruleName(unique)}`,
      async (harness, unique) => {
        const { job } = await harness.running({ unique })
        await isHeldBy(harness, job.id, unique, 'while it runs')
      },
    ),
    'a key held while ready is free in the step that claims its job': async (harness) => {
      await harness.running({ unique: WHILE_READY })
      await isFree(harness, WHILE_READY, 'once its job runs')
    },
    ...each(
      RETURNS,
      ({ type }) => `a key held while unfinished stays held through a ${type}`,
      async (harness, settlement) => {
        const { id } = await harness.finished(settlement, { unique: WHILE_UNFINISHED })
        await isHeldBy(harness, id, WHILE_UNFINISHED, 'while it waits for its next attempt')
      },
    ),
    'a key held while unfinished stays held through a rescue': async (harness) => {
      const held = await harness.running({ unique: WHILE_UNFINISHED })
      await harness.lose(held.worker)
      await isHeldBy(harness, held.job.id, WHILE_UNFINISHED, 'while it waits out its crash delay')
    },
    ...each(
      ENDINGS,
      ({ type }) => `a key held while unfinished is free in the step that makes its job ${type}`,
      async (harness, settlement) => {
        const { id } = await harness.finished(settlement, { unique: WHILE_UNFINISHED })
        await isFree(harness, WHILE_UNFINISHED, 'once its job is final')
        assert.equal((await harness.record(id)).uniqueKey, KEY, 'the record still shows it')
      },
    ),
    ...each(
      [WHILE_UNFINISHED, WHILE_READY],
      (unique) => `cancelling a waiting job frees its key: ${ruleName(unique)}`,
      async (harness, unique) => {
        const job = await harness.put({ unique })
        await cancelOne(harness.store, job.id, null)
        await isFree(harness, unique, 'once its job is cancelled')
      },
    ),
    ...each(
      ENDINGS,
      ({ type }) => `a key held for a time outlives a job that is ${type}, until its time is over`,
      async (harness, settlement) => {
        const { id } = await harness.finished(settlement, { unique: FOR_AN_HOUR })
        await isHeldBy(harness, id, FOR_AN_HOUR, 'after its job is final')
        await harness.advance(59 * MINUTE_MS)
        await isHeldBy(harness, id, FOR_AN_HOUR, 'nearly to the end')
        await harness.advance(2 * MINUTE_MS)
        await isFree(harness, FOR_AN_HOUR, 'after its time')
      },
    ),
    'a key held for a time outlives the memory of its job': async (harness) => {
      const { id } = await harness.finished(COMPLETED, { unique: FOR_AN_HOUR })
      await changeJobs(harness.store, { ids: [id] }, { type: 'discard' }, 10, null)
      assert.equal(await harness.store.admin.get(id), null)
      await isHeldBy(harness, id, FOR_AN_HOUR, 'although nothing is left of the job')
    },
    'a key held for a time is free after it, whatever its job still does': async (harness) => {
      const { job } = await harness.running({ unique: FOR_AN_HOUR })
      await harness.advance(61 * MINUTE_MS)
      await isFree(harness, FOR_AN_HOUR, 'while the first job still runs')
      await harness.inState(job.id, 'running')
    },
    'finishing a job does not free a key that another has taken since': async (harness) => {
      const first = await harness.running({ unique: WHILE_READY })
      const second = await harness.put({ unique: WHILE_READY })
      await harness.settled(first, COMPLETED)
      await isHeldBy(harness, second.id, WHILE_READY, 'by the second job')
    },
    'a key freed by a settle is free for a claim’s next enqueue, and nobody else’s': async (harness) => {
      const held = await harness.running({ unique: WHILE_UNFINISHED })
      await harness.cycle(held.worker, [settleRequest(held, COMPLETED)], {})
      const jobs = [newJob({ unique: WHILE_UNFINISHED }), newJob({ unique: WHILE_UNFINISHED })]
      const answers = (await Promise.all(jobs.map((job) => harness.enqueue([job])))).flat()
      assert.deepEqual(answers.map(({ outcome }) => outcome).toSorted(), ['duplicate', 'inserted'])
    },
    'other keys and jobs without a key are not in the way': async (harness) => {
      await harness.put({ unique: WHILE_UNFINISHED })
      await harness.put({ unique: uniqueWhile('unfinished', 'mail.send k2') })
      await harness.put({ unique: uniqueWhile('unfinished', 'mail.send K1') })
      await harness.put()
    },
    'two jobs with one key in one flush: the first is written, the second meets it': async (harness) => {
      const jobs = [
        newJob({ unique: WHILE_UNFINISHED }),
        newJob(),
        newJob({ unique: WHILE_UNFINISHED }),
      ] as const
      const answers = await harness.enqueue(jobs)
      assert.deepEqual(answers, [
        { id: jobs[0].id, outcome: 'inserted' },
        { id: jobs[1].id, outcome: 'inserted' },
        { id: jobs[0].id, outcome: 'duplicate' },
      ])
    },
    'of enqueues at once with one key, exactly one is written': async (harness) => {
      const jobs = Array.from({ length: 12 }, () => newJob({ unique: WHILE_UNFINISHED }))
      const answers = (await Promise.all(jobs.map((job) => harness.enqueue([job])))).flat()
      const winners = answers.filter(({ outcome }) => outcome === 'inserted')
      assert.equal(winners.length, 1)
      assert.deepEqual(new Set(answers.map(({ id }) => id)).size, 1, 'all callers learn the same holder')
      const { jobs: stored } = await harness.store.admin.list({ limit: 100, after: null })
      assert.equal(stored.length, 1)
    },
    'a repeated flush with keys answers as the first did, whoever holds them by now': async (harness) => {
      const holder = await harness.put({ unique: WHILE_UNFINISHED })
      const id = newFlushId()
      const jobs = [
        newJob({ unique: WHILE_UNFINISHED }),
        newJob({ unique: uniqueWhile('unfinished', 'mail.send k2') }),
      ]
      const first = await harness.enqueue(jobs, id)
      await cancelOne(harness.store, holder.id, null)
      await cancelOne(harness.store, jobs[1]?.id ?? holder.id, null)
      assert.deepEqual(await harness.enqueue(jobs, id), first, 'with both keys free')
      await isFree(harness, WHILE_UNFINISHED, 'the repeat took no key')
      assert.deepEqual(await harness.enqueue(jobs, id), first, 'with a new holder')
    },
    'a replayed job takes its key again': async (harness) => {
      const { id } = await harness.finished(DEAD, { unique: WHILE_UNFINISHED })
      const answer = await changeAll(harness, { ids: [id] }, { type: 'replay' })
      assert.deepEqual(answer, { changed: 1, skipped: 0 })
      await isHeldBy(harness, id, WHILE_UNFINISHED, 'by the replayed job')
      await harness.settled(await harness.claimOne(await harness.worker()), COMPLETED)
      await isFree(harness, WHILE_UNFINISHED, 'once it is final again')
    },
    ...each(
      RULES,
      (unique) => `a dead job whose key another holds is not replayed: ${ruleName(unique)}`,
      async (harness, unique) => {
        const { id } = await harness.finished(DEAD, { unique })
        await harness.advance(61 * MINUTE_MS)
        const holder = await harness.put({ unique })
        const before = await harness.record(id)
        const answer = await changeAll(harness, { ids: [id] }, { type: 'replay' })
        assert.deepEqual(answer, { changed: 0, skipped: 1 })
        assert.deepEqual(await harness.record(id), before, 'it stays dead')
        await isHeldBy(harness, holder.id, unique, 'by the other job')
        await harness.advance(SECOND_MS)
      },
    ),
  },
}
