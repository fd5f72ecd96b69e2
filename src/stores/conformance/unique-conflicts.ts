/** Unique keys: what an enqueue does that meets the holder of its key. Only a waiting holder is ever changed. */
import assert from 'node:assert/strict'
import type { NewJob } from '../../job/record.ts'
import type { OnConflict, UniqueClaim } from '../../job/unique.ts'
import { each, type Topic } from './suite.ts'
import {
  attemptRecord,
  COMPLETED,
  failure,
  idsOf,
  MINUTE_MS,
  near,
  newFlushId,
  newJob,
  NOW,
  retry,
  settleRequest,
  uniqueWhile,
  type Harness,
  type JobParts,
} from './support.ts'

const KEY = 'mail.send k1'
const REPLACE = uniqueWhile('unfinished', KEY, 'replace')
const RESCHEDULE = uniqueWhile('unfinished', KEY, 'reschedule')
const CHANGES: readonly OnConflict[] = ['replace', 'reschedule']
const CHANGED = { replace: 'replaced', reschedule: 'rescheduled', ignore: 'duplicate' } as const
const LATER = { inMs: 10 * MINUTE_MS }

function holdFor(onConflict: OnConflict): UniqueClaim {
  return { key: KEY, hold: { forMs: 60 * MINUTE_MS }, onConflict }
}

/** Enqueues a job that meets `holder`, and checks the answer. */
async function meet(harness: Harness, holder: Pick<NewJob, 'id'>, parts: JobParts): Promise<NewJob> {
  const job = newJob(parts)
  const outcome = CHANGED[parts.unique?.onConflict ?? 'ignore']
  assert.deepEqual(await harness.enqueue([job]), [{ id: holder.id, outcome }])
  assert.equal(
    await harness.store.admin.get(job.id),
    null,
    'the job that met the holder is not written itself',
  )
  return job
}

async function leavesAlone(harness: Harness, id: NewJob['id'], unique: UniqueClaim): Promise<void> {
  const before = await harness.record(id)
  const answers = await harness.enqueue([newJob({ unique, payload: '"new"', due: LATER })])
  assert.deepEqual(answers, [{ id, outcome: 'duplicate' }], 'the caller learns that nothing was changed')
  assert.deepEqual(await harness.record(id), before)
}

const NEW_PARTS: JobParts = {
  payload: '"new"',
  priority: 9,
  maxAttempts: 2,
  maxCrashes: 1,
  group: 'other',
  envelope: { correlationId: 'c2', tags: ['new'], metadata: { a: 'b' }, retry: null, timeoutMs: 5 },
}

export const uniqueConflictsTopic: Topic = {
  name: 'unique keys: conflicts',
  tests: {
    'replace gives a waiting holder the new input and options, under its own id': async (harness) => {
      const holder = await harness.put({ unique: REPLACE })
      const { createdAt } = await harness.record(holder.id)
      await harness.advance(MINUTE_MS)
      const job = await meet(harness, holder, { ...NEW_PARTS, unique: REPLACE })
      const record = await harness.inState(holder.id, 'ready')
      const { id: _id, due: _due, unique: _unique, ...facts } = job
      for (const [field, value] of Object.entries(facts)) {
        assert.deepEqual(record[field as keyof typeof facts], value, `${field} is the new one`)
      }
      assert.equal(record.createdAt, createdAt, 'it is still the job that was created then')
    },
    'a key is one for all queues, and replace moves its holder to another': async (harness) => {
      const holder = await harness.put({ unique: REPLACE, queue: 'a' })
      await meet(harness, holder, { unique: REPLACE, queue: 'b' })
      assert.equal((await harness.inState(holder.id, 'ready')).queue, 'b')
      await meet(harness, holder, { unique: { ...REPLACE, onConflict: 'ignore' }, queue: 'a' })
    },
    'replace moves a ready holder to a later time': async (harness) => {
      const holder = await harness.put({ unique: REPLACE })
      await meet(harness, holder, { unique: REPLACE, due: LATER, payload: '"new"' })
      const record = await harness.inState(holder.id, 'scheduled')
      near(record.dueAt, record.createdAt + LATER.inMs, 'it is due when the new job would be')
      assert.deepEqual(await harness.claim(await harness.worker()), [])
      await harness.passAndPromote(11 * MINUTE_MS)
      assert.equal((await harness.claimOne(await harness.worker())).job.payload, '"new"')
    },
    'replace moves a scheduled holder to now': async (harness) => {
      const holder = await harness.put({ unique: REPLACE, due: LATER })
      await meet(harness, holder, { unique: REPLACE, payload: '"new"', due: NOW })
      const claimed = await harness.claimOne(await harness.worker())
      assert.deepEqual([claimed.job.id, claimed.job.payload], [holder.id, '"new"'])
    },
    'a replaced job stands by its new rank': async (harness) => {
      const holder = await harness.put({ unique: REPLACE })
      await harness.advance(MINUTE_MS)
      const between = await harness.put()
      await harness.advance(MINUTE_MS)
      await meet(harness, holder, { unique: REPLACE })
      const urgent = await harness.put({ priority: 9 })
      assert.deepEqual(await harness.claimIds(await harness.worker()), [urgent.id, between.id, holder.id])
    },
    'replace changes a holder that waits for its next attempt': async (harness) => {
      const { id } = await harness.finished(retry(), { unique: REPLACE })
      await meet(harness, { id }, { unique: REPLACE, payload: '"new"' })
      assert.equal((await harness.claimOne(await harness.worker())).job.payload, '"new"')
    },
    'replace starts again from zero, without the old error, records, progress and log': async (harness) => {
      const worker = await harness.worker()
      const { id } = await harness.put({ unique: REPLACE, maxAttempts: 2 })
      const held = await harness.claimOne(worker)
      const { token, position } = held
      await harness.report(worker, [
        {
          token,
          position,
          progress: { done: 1, total: 2, note: null },
          log: [{ at: 1, level: 'info', message: 'old', fields: null }],
        },
      ])
      await harness.cycle(worker, [{ ...settleRequest(held, retry()), record: attemptRecord(held) }], null)
      await meet(harness, { id }, { unique: REPLACE, payload: '"new"', maxAttempts: 2 })
      const { attempt, crashes, error, attempts, progress, log } = await harness.inState(id, 'ready')
      assert.deepEqual(
        { attempt, crashes, error, attempts, progress, log },
        { attempt: 0, crashes: 0, error: null, attempts: [], progress: null, log: [] },
      )
      const again = await harness.claimOne(worker)
      assert.deepEqual([again.job.attempt, again.job.payload], [1, '"new"'], 'it is attempt 1 of 2')
    },
    'replace clears a holder that lost a worker: the new input is no suspect': async (harness) => {
      const id = await harness.suspect({ unique: REPLACE })
      await meet(harness, { id }, { unique: REPLACE, payload: '"new"' })
      const record = await harness.inState(id, 'ready')
      assert.deepEqual([record.attempt, record.crashes, record.error], [0, 0, null])
      assert.deepEqual(await harness.claimIds(await harness.worker(), { suspects: false }), [id])
      const [status] = await harness.store.admin.queues()
      assert.equal(status?.oldestReadyAt, null, 'it waits nowhere else')
    },
    'reschedule keeps the attempts that were used, and the error': async (harness) => {
      const error = failure('first try')
      const { id } = await harness.finished(retry(MINUTE_MS, error), { unique: RESCHEDULE })
      await meet(harness, { id }, { unique: RESCHEDULE })
      const record = await harness.inState(id, 'ready')
      assert.deepEqual([record.attempt, record.error], [1, error])
    },
    'the newest input always runs, however claims and replaces cross': async (harness) => {
      const worker = await harness.worker()
      const keys = Array.from({ length: 40 }, (_, at) => `mail.send cross ${at}`)
      const unique = (key: string): UniqueClaim => ({ key, hold: { while: 'ready' }, onConflict: 'replace' })
      for (const key of keys) await harness.put({ unique: unique(key), payload: '"old"' })
      const ran = new Set<string>()
      const claimAll = async (): Promise<void> => {
        for (let turn = 0; turn < keys.length; turn++) {
          const { leases } = await harness.cycle(worker, [], { limit: 2 })
          for (const { jobs } of leases) for (const { payload } of jobs) ran.add(payload)
        }
      }
      const replaceAll = async (): Promise<void> => {
        for (const key of keys) {
          const job = newJob({ unique: unique(key), payload: JSON.stringify(key) })
          const [answer] = await harness.store.enqueue({ id: newFlushId(), jobs: [job] })
          assert.notEqual(answer?.outcome, 'duplicate', 'a job that has not started takes the new input')
        }
      }
      await Promise.all([claimAll(), replaceAll(), claimAll()])
      await claimAll()
      assert.deepEqual(
        keys.filter((key) => !ran.has(JSON.stringify(key))),
        [],
      )
    },
    'a replaced job still holds its key': async (harness) => {
      const holder = await harness.put({ unique: REPLACE })
      await meet(harness, holder, { unique: REPLACE })
      await meet(harness, holder, { unique: uniqueWhile('unfinished', KEY, 'ignore') })
      await harness.settled(await harness.claimOne(await harness.worker()), COMPLETED)
      await harness.put({ unique: REPLACE })
    },
    'replace works within one flush': async (harness) => {
      const jobs = [newJob({ unique: REPLACE }), newJob({ unique: REPLACE, payload: '"new"' })] as const
      assert.deepEqual(await harness.enqueue(jobs), [
        { id: jobs[0].id, outcome: 'inserted' },
        { id: jobs[0].id, outcome: 'replaced' },
      ])
      assert.equal((await harness.record(jobs[0].id)).payload, '"new"')
      assert.deepEqual(await harness.claimIds(await harness.worker()), idsOf([jobs[0]]), 'there is one job')
    },
    'reschedule moves the due time of a ready holder and nothing else': async (harness) => {
      const holder = await harness.put({ unique: RESCHEDULE })
      const { dueAt: _before, state: _state, ...before } = await harness.record(holder.id)
      await meet(harness, holder, { ...NEW_PARTS, unique: RESCHEDULE, due: LATER })
      const { dueAt, state, ...after } = await harness.record(holder.id)
      assert.deepEqual(after, before)
      assert.equal(state, 'scheduled')
      near(dueAt, before.createdAt + LATER.inMs, 'it is due when the new job would be')
    },
    'reschedule moves a scheduled holder to now': async (harness) => {
      const holder = await harness.put({ unique: RESCHEDULE, due: LATER, payload: '"old"' })
      await meet(harness, holder, { unique: RESCHEDULE, due: NOW, payload: '"new"' })
      const { job } = await harness.claimOne(await harness.worker())
      assert.deepEqual([job.id, job.payload], [holder.id, '"old"'])
    },
    'a rescheduled job stands by its new due time': async (harness) => {
      const holder = await harness.put({ unique: RESCHEDULE })
      await harness.advance(MINUTE_MS)
      const between = await harness.put()
      await harness.advance(MINUTE_MS)
      await meet(harness, holder, { unique: RESCHEDULE })
      const last = await harness.put()
      assert.deepEqual(await harness.claimIds(await harness.worker()), [between.id, holder.id, last.id])
    },
    ...each(
      CHANGES,
      (onConflict) => `a running holder is left alone: ${onConflict}`,
      async (harness, onConflict) => {
        const held = await harness.running({ unique: uniqueWhile('unfinished', KEY, onConflict) })
        await leavesAlone(harness, held.job.id, uniqueWhile('unfinished', KEY, onConflict))
        assert.equal(await harness.settle(held, COMPLETED), 'written')
      },
    ),
    ...each(
      CHANGES,
      (onConflict) => `a finished holder is left alone: ${onConflict}`,
      async (harness, onConflict) => {
        const { id } = await harness.finished(COMPLETED, { unique: holdFor(onConflict) })
        await leavesAlone(harness, id, holdFor(onConflict))
      },
    ),
    'the new enqueue says what happens, not the holder': async (harness) => {
      const holder = await harness.put({ unique: REPLACE })
      await leavesAlone(harness, holder.id, uniqueWhile('unfinished', KEY, 'ignore'))
    },
    'replaces that cross leave one job with the input of one of them': async (harness) => {
      const holder = await harness.put({ unique: REPLACE })
      const jobs = Array.from({ length: 8 }, (_, n) => newJob({ unique: REPLACE, payload: `${n}` }))
      const answers = (await Promise.all(jobs.map((job) => harness.enqueue([job])))).flat()
      assert.deepEqual(new Set(answers.map(({ id }) => id)), new Set([holder.id]))
      const claimed = await harness.claimAll(await harness.worker())
      assert.equal(claimed.length, 1)
      assert.ok(
        jobs.some(({ payload }) => payload === claimed[0]?.job.payload),
        'its input is one of the new ones',
      )
    },
  },
}
