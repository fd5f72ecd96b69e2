/** Reports: progress and log lines of running jobs, kept up to a bound. */
import assert from 'node:assert/strict'
import type { JobLogLine, Progress } from '../../job/record.ts'
import { MAX_LOG_LINES, type CycleAnswer, type Report } from '../store.ts'
import { each, type Topic } from './suite.ts'
import {
  COMPLETED,
  EVERY_SETTLEMENT,
  heldIn,
  LEASE_MS,
  newJobs,
  QUEUE,
  SECOND_MS,
  settleRequest,
  UNKNOWN_TOKEN,
  type Harness,
  type Held,
} from './support.ts'

const HALF: Progress = { done: 5, total: 10, note: 'halfway 🛠️' }

function line(n: number): JobLogLine {
  return {
    at: 1_900_000_000_000 + n,
    level: n % 2 === 0 ? 'info' : 'warn',
    message: `line ${n}`,
    fields: `{"n":${n}}`,
  }
}

function lines(from: number, count: number): JobLogLine[] {
  return Array.from({ length: count }, (_, index) => line(from + index))
}

function send(harness: Harness, held: Held, parts: Partial<Report>): Promise<void> {
  const { worker, token, position } = held
  return harness.report(worker, [{ token, position, progress: null, log: [], ...parts }])
}

/** A report with something wrong about it: nothing may change. */
async function isIgnored(harness: Harness, held: Held, wrong: Partial<Held>): Promise<void> {
  const before = await harness.record(held.job.id)
  await send(harness, { ...held, ...wrong }, { progress: HALF, log: lines(0, 2) })
  assert.deepEqual(await harness.record(held.job.id), before)
}

export const reportsTopic: Topic = {
  name: 'reports',
  tests: {
    'progress and log lines show on the record': async (harness) => {
      const held = await harness.running()
      await send(harness, held, { progress: HALF, log: lines(0, 2) })
      const record = await harness.inState(held.job.id, 'running')
      assert.deepEqual(record.progress, HALF)
      assert.deepEqual(record.log, lines(0, 2))
    },
    'the newest progress counts, and log lines add up in order': async (harness) => {
      const held = await harness.running()
      await send(harness, held, { progress: HALF, log: lines(0, 2) })
      await send(harness, held, { log: lines(2, 1) })
      assert.deepEqual(
        (await harness.record(held.job.id)).progress,
        HALF,
        'a report without progress leaves it',
      )
      const last: Progress = { done: 10, total: null, note: null }
      await send(harness, held, {
        progress: last,
        log: [{ at: 1, level: 'debug', message: '', fields: null }],
      })
      const record = await harness.record(held.job.id)
      assert.deepEqual(record.progress, last)
      assert.deepEqual(record.log, [...lines(0, 3), { at: 1, level: 'debug', message: '', fields: null }])
    },
    'each position of a lease has its own': async (harness) => {
      await harness.enqueue(newJobs(3))
      const held = await harness.claimAll(await harness.worker())
      const [first, second, third] = held as [Held, Held, Held]
      const { token } = first
      await harness.report(first.worker, [
        { token, position: 2, progress: HALF, log: [] },
        { token, position: 0, progress: null, log: lines(7, 1) },
      ])
      assert.deepEqual((await harness.record(first.job.id)).log, lines(7, 1))
      const untouched = await harness.record(second.job.id)
      assert.deepEqual({ progress: untouched.progress, log: untouched.log }, { progress: null, log: [] })
      assert.deepEqual((await harness.record(third.job.id)).progress, HALF)
    },
    'the newest lines are kept, up to the bound': async (harness) => {
      const held = await harness.running()
      await send(harness, held, { log: lines(0, MAX_LOG_LINES - 1) })
      await send(harness, held, { log: lines(MAX_LOG_LINES - 1, 3) })
      assert.deepEqual((await harness.record(held.job.id)).log, lines(2, MAX_LOG_LINES))
      await send(harness, held, { log: lines(1_000, 3 * MAX_LOG_LINES) })
      const newest = lines(1_000 + 2 * MAX_LOG_LINES, MAX_LOG_LINES)
      assert.deepEqual((await harness.record(held.job.id)).log, newest, 'also of one long report')
    },
    ...each(
      EVERY_SETTLEMENT,
      ({ type }) => `what a job reported stays with it when it is settled as ${type}`,
      async (harness, settlement) => {
        const held = await harness.running()
        await send(harness, held, { progress: HALF, log: lines(0, 2) })
        const { progress, log } = await harness.settled(held, settlement)
        assert.deepEqual({ progress, log }, { progress: HALF, log: lines(0, 2) })
      },
    ),
    ...each(
      EVERY_SETTLEMENT,
      ({ type }) => `a report is kept by the cycle that settles its job as ${type}`,
      async (harness, settlement) => {
        const held = await harness.running()
        await send(harness, held, { log: lines(0, 1) })
        const { worker, token, position } = held
        const reports = [{ token, position, progress: HALF, log: lines(1, 1) }]
        const settle = [settleRequest(held, settlement)]
        const { settled } = await harness.store.cycle({ worker, settle, claim: null, reports })
        assert.deepEqual(settled, ['written'])
        const { progress, log } = await harness.record(held.job.id)
        assert.deepEqual({ progress, log }, { progress: HALF, log: lines(0, 2) })
      },
    ),
    'a cycle that reports can settle and claim other jobs': async (harness) => {
      await harness.enqueue(newJobs(4))
      const worker = await harness.worker()
      const [first] = await harness.claimAll(worker, { limit: 1 })
      const [second] = await harness.claimAll(worker, { limit: 1 })
      assert.ok(first !== undefined && second !== undefined)
      const { alive, settled, leases } = await harness.store.cycle({
        worker,
        settle: [settleRequest(first, COMPLETED)],
        claim: { queue: QUEUE, limit: 10, suspects: false },
        reports: [{ token: second.token, position: 0, progress: HALF, log: [] }],
      })
      assert.deepEqual({ alive, settled }, { alive: true, settled: ['written'] })
      assert.equal(heldIn(worker, leases).length, 2)
      assert.deepEqual((await harness.inState(second.job.id, 'running')).progress, HALF)
      assert.equal((await harness.inState(first.job.id, 'completed')).progress, null)
    },
    'cycles that report and settle the same leases crosswise are all answered': async (harness) => {
      await harness.enqueue(newJobs(40))
      const worker = await harness.worker()
      const low = await harness.claimAll(worker, { limit: 20 })
      const high = await harness.claimAll(worker, { limit: 20 })
      const cycle = (reported: Held | undefined, settled: Held | undefined): Promise<CycleAnswer> => {
        assert.ok(reported !== undefined && settled !== undefined)
        const { token, position } = reported
        const reports = [{ token, position, progress: HALF, log: [] }]
        return harness.store.cycle({
          worker,
          settle: [settleRequest(settled, COMPLETED)],
          claim: null,
          reports,
        })
      }
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, n) => [
          cycle(low[n + 10], high[n]),
          cycle(high[n + 10], low[n]),
        ]).flat(),
      )
      for (const { settled } of answers) assert.deepEqual(settled, ['written'])
      for (const { job } of [...low.slice(10), ...high.slice(10)])
        assert.deepEqual((await harness.record(job.id)).progress, HALF)
    },
    'a report by another worker, token or position is ignored': async (harness) => {
      const held = await harness.running()
      await isIgnored(harness, held, { worker: await harness.worker() })
      await isIgnored(harness, held, { token: UNKNOWN_TOKEN })
      await isIgnored(harness, held, { position: 1 })
      await isIgnored(harness, held, { position: -1 })
    },
    'a report on a settled position is ignored': async (harness) => {
      await harness.enqueue(newJobs(2))
      const [first, second] = (await harness.claimAll(await harness.worker())) as [Held, Held]
      await harness.settled(first, COMPLETED)
      await isIgnored(harness, first, {})
      await harness.settled(second, COMPLETED)
      await isIgnored(harness, second, {})
    },
    'a report under a rescued lease is ignored, also when another runs the job': async (harness) => {
      const zombie = await harness.running()
      await harness.lose(zombie.worker)
      await isIgnored(harness, zombie, {})
      await harness.passAndPromote(2 * SECOND_MS)
      await harness.claimOne(await harness.worker(), { suspects: true })
      await isIgnored(harness, zombie, {})
    },
    'one stale report does not keep the others from being kept': async (harness) => {
      const held = await harness.running()
      const { worker, token, position } = held
      await harness.report(worker, [
        { token: UNKNOWN_TOKEN, position, progress: HALF, log: [] },
        { token, position, progress: HALF, log: [] },
      ])
      assert.deepEqual((await harness.record(held.job.id)).progress, HALF)
    },
    'an expired worker that was not rescued still reports': async (harness) => {
      const held = await harness.running()
      await harness.advance(10 * LEASE_MS)
      await send(harness, held, { progress: HALF })
      assert.deepEqual((await harness.record(held.job.id)).progress, HALF)
    },
  },
}
