/** Records of attempts: kept with the job, in order, the newest of them. */
import assert from 'node:assert/strict'
import type { JobId, WorkerId } from '../../job/ids.ts'
import type { AttemptRecord } from '../../job/record.ts'
import type { Settlement } from '../../job/settlement.ts'
import { each, type Topic } from './suite.ts'
import {
  attemptRecord,
  between,
  CANCELLED,
  cancelOne,
  changeJobs,
  COMPLETED,
  DEAD,
  LEASE_MS,
  MINUTE_MS,
  near,
  RELEASE,
  retry,
  SECOND_MS,
  settleRequest,
  snooze,
  type Harness,
  type Held,
} from './support.ts'

const HOUR_MS = 60 * MINUTE_MS

async function settleWith(
  harness: Harness,
  held: Held,
  settlement: Settlement,
  record: AttemptRecord,
  keepRecords?: number,
): Promise<void> {
  const request = { ...settleRequest(held, settlement), record }
  const limited = keepRecords === undefined ? request : { ...request, keepRecords }
  assert.deepEqual((await harness.cycle(held.worker, [limited], null)).settled, ['written'])
}

/** Fails so often, each time with a record that tells which; answers the records. */
async function failTimes(
  harness: Harness,
  worker: WorkerId,
  times: number,
  keep?: number,
): Promise<AttemptRecord[]> {
  const records: AttemptRecord[] = []
  for (let time = 1; time <= times; time++) {
    const held = await harness.claimOne(worker)
    const record = attemptRecord(held, { durationMs: time })
    await settleWith(harness, held, retry(SECOND_MS), record, keep)
    records.push(record)
    await harness.passAndPromote(2 * SECOND_MS)
  }
  return records
}

async function attemptsOf(harness: Harness, id: JobId): Promise<readonly AttemptRecord[]> {
  return (await harness.record(id)).attempts
}

export const attemptsTopic: Topic = {
  name: 'records of attempts',
  tests: {
    'a job that nobody tried has none, nor has one that is settled without': async (harness) => {
      const held = await harness.running()
      assert.deepEqual(await attemptsOf(harness, held.job.id), [])
      await harness.settled(held, retry())
      assert.deepEqual(await attemptsOf(harness, held.job.id), [])
    },
    ...each(
      [COMPLETED, retry(), DEAD, snooze(), RELEASE, CANCELLED],
      ({ type }) => `the record of an attempt that is settled as ${type} is kept`,
      async (harness, settlement) => {
        const held = await harness.running()
        const text = 'with "quotes", 🛠️ and\nlines'
        const error = {
          kind: 'transient' as const,
          name: 'Error',
          message: text,
          code: null,
          fingerprint: 'f9',
        }
        const record = attemptRecord(held, { error })
        await settleWith(harness, held, settlement, record)
        assert.deepEqual(await attemptsOf(harness, held.job.id), [record])
      },
    ),
    'records come in order, through retries to the end': async (harness) => {
      const worker = await harness.worker(HOUR_MS)
      const job = await harness.put()
      const records = await failTimes(harness, worker, 3)
      assert.deepEqual(await attemptsOf(harness, job.id), records)
      const held = await harness.claimOne(worker)
      assert.deepEqual(await attemptsOf(harness, job.id), records, 'while it runs')
      const last = attemptRecord(held, { error: null, outcome: 'cancelled' })
      await settleWith(harness, held, DEAD, last)
      assert.deepEqual(await attemptsOf(harness, job.id), [...records, last])
    },
    'the newest records stay where there are too many': async (harness) => {
      const worker = await harness.worker(HOUR_MS)
      const job = await harness.put({ maxAttempts: 9 })
      const records = await failTimes(harness, worker, 4, 2)
      assert.deepEqual(await attemptsOf(harness, job.id), records.slice(-2))
    },
    'where none is to be kept, none is': async (harness) => {
      const worker = await harness.worker(HOUR_MS)
      const job = await harness.put({ maxAttempts: 9 })
      await failTimes(harness, worker, 2)
      await failTimes(harness, worker, 1, 0)
      assert.deepEqual(await attemptsOf(harness, job.id), [])
    },
    'a repeated settle adds its record once': async (harness) => {
      const held = await harness.running()
      const request = { ...settleRequest(held, retry()), record: attemptRecord(held) }
      await harness.cycle(held.worker, [request], null)
      assert.deepEqual((await harness.cycle(held.worker, [request], null)).settled, ['already'])
      assert.equal((await attemptsOf(harness, held.job.id)).length, 1)
    },
    'a lost lease leaves no record of its attempt but the crash': async (harness) => {
      const held = await harness.running()
      const { jobs } = await harness.lose(held.worker)
      const request = { ...settleRequest(held, retry()), record: attemptRecord(held) }
      assert.deepEqual((await harness.cycle(held.worker, [request], null)).settled, ['lost'])
      const [crash, ...more] = await attemptsOf(harness, held.job.id)
      assert.ok(crash !== undefined && more.length === 0, 'there is one record')
      assert.deepEqual([crash.outcome, crash.worker, crash.attempt], ['crashed', held.worker, 1])
      near(crash.startedAt, held.lease.claimedAt, 'it began with the claim')
      between(crash.durationMs, LEASE_MS, LEASE_MS + 30 * SECOND_MS, 'it lasted until the rescue')
      const { stack: _stack, attempt: _attempt, ...error } = jobs[0]?.error ?? assert.fail('it was rescued')
      assert.deepEqual(crash.error, error)
    },
    'a job that crashed and then failed has both records': async (harness) => {
      const held = await harness.running()
      await harness.lose(held.worker)
      await harness.passAndPromote(2 * SECOND_MS)
      const worker = await harness.worker()
      const again = await harness.claimOne(worker, { suspects: true })
      await settleWith(harness, again, DEAD, attemptRecord(again))
      const outcomes = (await attemptsOf(harness, held.job.id)).map(({ outcome }) => outcome)
      assert.deepEqual(outcomes, ['crashed', 'failed'])
    },
    'a retry that becomes a cancel keeps its record': async (harness) => {
      const held = await harness.running()
      await cancelOne(harness.store, held.job.id, 'enough')
      const record = attemptRecord(held)
      await settleWith(harness, held, retry(), record)
      await harness.inState(held.job.id, 'cancelled')
      assert.deepEqual(await attemptsOf(harness, held.job.id), [record])
    },
    'a replayed job keeps its records': async (harness) => {
      const held = await harness.running()
      const record = attemptRecord(held)
      await settleWith(harness, held, DEAD, record)
      await changeJobs(harness.store, {}, { type: 'replay' }, 10, null)
      assert.deepEqual(await attemptsOf(harness, held.job.id), [record])
    },
    'records live beside what the handler said': async (harness) => {
      const held = await harness.running()
      const line = { at: 1, level: 'info' as const, message: 'hello', fields: null }
      const progress = { done: 1, total: 2, note: null }
      const report = { token: held.token, position: held.position, progress, log: [line] }
      await harness.report(held.worker, [report])
      const record = attemptRecord(held)
      await settleWith(harness, held, DEAD, record)
      const dead = await harness.inState(held.job.id, 'dead')
      assert.deepEqual([dead.attempts, dead.log, dead.progress], [[record], [line], progress])
    },
    'a completed job tells who completed it': async (harness) => {
      const held = await harness.running()
      await harness.settled(held, COMPLETED)
      assert.equal((await harness.inState(held.job.id, 'completed')).worker, held.worker)
    },
  },
}
