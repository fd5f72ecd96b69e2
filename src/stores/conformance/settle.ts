/** Settles: what each kind writes, and that a position is written once, despite repeats and concurrent calls. */
import assert from 'node:assert/strict'
import type { JobRecord } from '../../job/record.ts'
import type { Settlement } from '../../job/settlement.ts'
import { MAX_BATCH } from '../store.ts'
import { each, type Topic } from './suite.ts'
import {
  CANCELLED,
  COMPLETED,
  CONFIRM,
  DEAD,
  EVERY_SETTLEMENT,
  failure,
  idsOf,
  MINUTE_MS,
  near,
  newJobs,
  RELEASE,
  retry,
  settleRequest,
  snooze,
  uniqueWhile,
  type Harness,
  type Held,
} from './support.ts'

async function threeHeld(harness: Harness): Promise<[Held, Held, Held]> {
  await harness.enqueue(newJobs(3))
  return (await harness.claimAll(await harness.worker())) as [Held, Held, Held]
}

/** Settlements that leave different traces, so that one can tell which of them was written. */
function crossing(): Settlement[] {
  return [0, 1, 2, 3, 4].flatMap((n): Settlement[] => [
    { type: 'completed', result: `${n}`, resultDropped: false },
    { type: 'cancelled', reason: `${n}` },
    { type: 'dead', error: failure(`${n}`) },
  ])
}

function shows(record: JobRecord, settlement: Settlement | undefined): boolean {
  if (settlement?.type === 'completed')
    return record.state === 'completed' && record.result === settlement.result
  if (settlement?.type === 'cancelled')
    return record.state === 'cancelled' && record.reason === settlement.reason
  if (settlement?.type === 'dead')
    return record.state === 'dead' && record.error.message === settlement.error.message
  return false
}

export const settleTopic: Topic = {
  name: 'settle',
  tests: {
    'completed keeps the result, how long it ran and when it ended': async (harness) => {
      const result = JSON.stringify({ text: 'naïve 🛠️', deep: [[[]]] })
      const held = await harness.running()
      await harness.advance(MINUTE_MS)
      await harness.settled(held, { type: 'completed', result, resultDropped: false })
      const record = await harness.inState(held.job.id, 'completed')
      assert.equal(record.result, result, 'the result is kept byte for byte')
      assert.equal(record.resultDropped, false)
      assert.equal(record.runMs, 12)
      assert.equal(record.attempt, 1)
      near(record.finishedAt, held.lease.claimedAt + MINUTE_MS, 'finishedAt is the time of the settle')
    },
    'completed tells where a result was dropped': async (harness) => {
      const held = await harness.running()
      await harness.settled(held, { type: 'completed', result: null, resultDropped: true })
      const record = await harness.inState(held.job.id, 'completed')
      assert.deepEqual(
        { result: record.result, dropped: record.resultDropped },
        { result: null, dropped: true },
      )
    },
    'completed without a trace leaves nothing behind but the queue, and frees the unique key': async (
      harness,
    ) => {
      const unique = uniqueWhile('unfinished')
      const long = JSON.stringify('x'.repeat(10_000))
      const held = await harness.running({ unique, payload: long })
      const request = { ...settleRequest(held, COMPLETED), forget: true }
      assert.deepEqual((await harness.cycle(held.worker, [request], null)).settled, ['written'])
      assert.equal(await harness.store.admin.get(held.job.id), null)
      const [status] = await harness.store.admin.queues()
      assert.equal(status?.counts.completed ?? 0, 0)
      assert.equal(await harness.settle(held, COMPLETED), 'already', 'a repeat is recognised all the same')
      await harness.put({ unique })
    },
    'what dies can be forgotten as well; what comes back is kept as ever': async (harness) => {
      const [first, second, third] = await threeHeld(harness)
      const requests = [
        { ...settleRequest(first, DEAD), forget: true },
        { ...settleRequest(second, retry()), forget: true },
        { ...settleRequest(third, COMPLETED), forget: true },
      ]
      await harness.cycle(first.worker, requests, null)
      assert.equal(await harness.store.admin.get(first.job.id), null)
      await harness.inState(second.job.id, 'scheduled')
      assert.equal(await harness.store.admin.get(third.job.id), null)
      const [status] = await harness.store.admin.queues()
      assert.equal(status?.counts.dead ?? 0, 0)
    },
    'retry schedules the job after its delay, with its attempt used and its error kept': async (harness) => {
      const held = await harness.running()
      const error = failure('first try', 'timeout')
      await harness.settled(held, retry(10 * MINUTE_MS, error))
      const record = await harness.inState(held.job.id, 'scheduled')
      assert.equal(record.attempt, 1)
      assert.deepEqual(record.error, error)
      near(record.dueAt, held.lease.claimedAt + 10 * MINUTE_MS, 'it is due after the delay')
      await harness.passAndPromote(11 * MINUTE_MS)
      assert.equal(
        (await harness.claimOne(await harness.worker())).job.attempt,
        2,
        'the next claim is attempt 2',
      )
    },
    'dead keeps the error and when it ended': async (harness) => {
      const held = await harness.running()
      const error = failure('text with "quotes", 🛠️ and\nlines', 'permanent')
      await harness.settled(held, { type: 'dead', error })
      const record = await harness.inState(held.job.id, 'dead')
      assert.deepEqual(record.error, error)
      assert.equal(record.attempt, 1)
      near(record.finishedAt, held.lease.claimedAt, 'finishedAt is the time of the settle')
    },
    'snooze schedules the job and hands the attempt back': async (harness) => {
      const held = await harness.running()
      await harness.settled(held, snooze(10 * MINUTE_MS))
      const record = await harness.inState(held.job.id, 'scheduled')
      assert.deepEqual({ attempt: record.attempt, error: record.error }, { attempt: 0, error: null })
      near(record.dueAt, held.lease.claimedAt + 10 * MINUTE_MS, 'it is due after the delay')
      await harness.passAndPromote(11 * MINUTE_MS)
      assert.equal(
        (await harness.claimOne(await harness.worker())).job.attempt,
        1,
        'the next claim is attempt 1 again',
      )
    },
    'snooze keeps the error that it names': async (harness) => {
      const error = failure('the mail server is down', 'dependency_down')
      const record = await harness.finished(snooze(MINUTE_MS, error))
      assert.deepEqual({ error: record.error, attempt: record.attempt }, { error, attempt: 0 })
    },
    'release makes the job ready where it stood and hands the attempt back': async (harness) => {
      const held = await harness.running()
      await harness.advance(MINUTE_MS)
      await harness.settled(held, RELEASE)
      const record = await harness.inState(held.job.id, 'ready')
      assert.deepEqual(
        { attempt: record.attempt, dueAt: record.dueAt },
        { attempt: 0, dueAt: held.job.dueAt },
      )
      assert.equal((await harness.claimOne(await harness.worker())).job.attempt, 1)
    },
    'confirm changes nothing of a job that is completed': async (harness) => {
      const held = await harness.running()
      const completed = await harness.settled(held, COMPLETED)
      assert.equal(await harness.settle(held, CONFIRM), 'already')
      assert.deepEqual(await harness.record(held.job.id), completed)
    },
    'confirm makes a job ready that is not completed, and hands the attempt back': async (harness) => {
      const [first, second, third] = await threeHeld(harness)
      await harness.advance(MINUTE_MS)
      await harness.settled(second, CONFIRM)
      const record = await harness.inState(second.job.id, 'ready')
      assert.deepEqual(
        { attempt: record.attempt, dueAt: record.dueAt, error: record.error },
        { attempt: 0, dueAt: second.job.dueAt, error: null },
      )
      for (const { job } of [first, third]) await harness.inState(job.id, 'running')
      const again = await harness.claimOne(await harness.worker())
      assert.deepEqual([again.job.id, again.job.attempt], [second.job.id, 1])
    },
    'cancelled keeps the reason and when it ended': async (harness) => {
      const held = await harness.running()
      await harness.settled(held, CANCELLED)
      const record = await harness.inState(held.job.id, 'cancelled')
      assert.equal(record.reason, 'not needed')
      near(record.finishedAt, held.lease.claimedAt, 'finishedAt is the time of the settle')
    },
    'the newest error stays on the record, also when the job completes': async (harness) => {
      const worker = await harness.worker()
      const job = await harness.put()
      for (const message of ['first', 'second']) {
        await harness.settled(await harness.claimOne(worker), retry(1_000, failure(message)))
        await harness.passAndPromote(2_000)
      }
      await harness.settled(await harness.claimOne(worker), snooze(1_000))
      await harness.passAndPromote(2_000)
      const claimed = await harness.claimOne(worker)
      assert.equal(claimed.job.attempt, 3, 'two retries used an attempt each, the snooze none')
      await harness.settled(claimed, COMPLETED)
      assert.equal((await harness.inState(job.id, 'completed')).error?.message, 'second')
    },
    ...each(
      EVERY_SETTLEMENT,
      ({ type }) => `settling twice changes nothing and answers already: ${type}`,
      async (harness, settlement) => {
        const held = await harness.running()
        const first = await harness.settled(held, settlement)
        assert.equal(await harness.settle(held, settlement), 'already', 'a repeat')
        assert.equal(await harness.settle(held, COMPLETED), 'already', 'a second thought')
        assert.deepEqual(
          await harness.record(held.job.id),
          first,
          'the record is what the first settle made it',
        )
      },
    ),
    'a position settled before is answered already while its lease goes on': async (harness) => {
      const [first, second, third] = await threeHeld(harness)
      const record = await harness.settled(second, DEAD)
      assert.equal(await harness.settle(second, COMPLETED), 'already')
      assert.deepEqual(await harness.record(second.job.id), record)
      assert.equal(await harness.settle(third, COMPLETED), 'written')
      assert.equal(await harness.settle(first, COMPLETED), 'written')
    },
    'one position twice in one call is written once, by the first': async (harness) => {
      const held = await harness.running()
      const requests = [settleRequest(held, COMPLETED), settleRequest(held, DEAD)]
      const { settled } = await harness.cycle(held.worker, requests, null)
      assert.deepEqual(settled, ['written', 'already'])
      await harness.inState(held.job.id, 'completed')
    },
    'of settles that cross, exactly one is written': async (harness) => {
      const held = await harness.running()
      const settlements = crossing()
      const answers = await Promise.all(settlements.map((settlement) => harness.settle(held, settlement)))
      const winners = settlements.filter((_, index) => answers[index] === 'written')
      assert.equal(winners.length, 1, `exactly one is written, not: ${answers.join(', ')}`)
      assert.equal(answers.filter((answer) => answer === 'already').length, settlements.length - 1)
      assert.ok(shows(await harness.record(held.job.id), winners[0]), 'the record is what the winner wrote')
    },
    'settles that cross on one lease do not disturb each other': async (harness) => {
      await harness.enqueue(newJobs(50))
      const worker = await harness.worker()
      const held = await harness.claimAll(worker, { limit: 50 })
      const twice = [...held, ...held.toReversed()]
      const answers = await Promise.all(twice.map((one) => harness.settle(one, COMPLETED)))
      assert.equal(answers.filter((answer) => answer === 'written').length, 50)
      assert.equal(answers.filter((answer) => answer === 'already').length, 50)
      const { tokens } = await harness.store.heartbeat({ worker, undelivered: [] })
      assert.deepEqual(tokens, [], 'the store saw that the lease is finished')
    },
    'a lease stands until its last position is settled': async (harness) => {
      const [first, second, third] = await threeHeld(harness)
      const { worker, token } = first
      const tokens = async (): Promise<unknown> =>
        (await harness.store.heartbeat({ worker, undelivered: [] })).tokens
      await harness.settled(second, COMPLETED)
      await harness.settled(first, RELEASE)
      assert.deepEqual(await tokens(), [token], 'with one position open')
      await harness.settled(third, retry())
      assert.deepEqual(await tokens(), [], 'with none')
    },
    'settles are answered in order, each for itself': async (harness) => {
      const [first, second, third] = await threeHeld(harness)
      await harness.settled(second, COMPLETED)
      const requests = [third, second, { token: third.token, position: 7 }, first]
      const { settled } = await harness.cycle(
        first.worker,
        requests.map((one) => settleRequest(one, DEAD)),
        null,
      )
      assert.deepEqual(settled, ['written', 'already', 'lost', 'written'])
    },
    'each position is settled in its own way': async (harness) => {
      const [first, second, third] = await threeHeld(harness)
      const requests = [
        settleRequest(third, retry()),
        settleRequest(first, COMPLETED),
        settleRequest(second, RELEASE),
      ]
      await harness.cycle(first.worker, requests, null)
      await harness.inState(first.job.id, 'completed')
      await harness.inState(second.job.id, 'ready')
      await harness.inState(third.job.id, 'scheduled')
    },
    'a settlement of an unknown kind is refused, and nothing of its call is written': async (harness) => {
      const [first, second, third] = await threeHeld(harness)
      const unknown = { type: 'buried', reason: 'nobody knows' } as unknown as Settlement
      const requests = [
        settleRequest(first, COMPLETED),
        settleRequest(second, unknown),
        settleRequest(third, retry()),
      ]
      await assert.rejects(harness.cycle(first.worker, requests, {}), { code: 'HF_STORE_CONTRACT' })
      for (const { job } of [first, second, third]) await harness.inState(job.id, 'running')
      assert.equal(await harness.settle(second, COMPLETED), 'written', 'the position is still open')
    },
    ...each(
      [
        ['a delay', { settlement: retry(Number.NaN) }],
        ['a duration', { runMs: Number.POSITIVE_INFINITY }],
      ] as const,
      ([what]) => `${what} that is not a number is refused, and nothing of its call is written`,
      async (harness, [, bad]) => {
        const [first, second, third] = await threeHeld(harness)
        const requests = [
          settleRequest(first, COMPLETED),
          { ...settleRequest(second, snooze()), ...bad },
          settleRequest(third, DEAD),
        ]
        await assert.rejects(harness.cycle(first.worker, requests, {}), { code: 'HF_STORE_REFUSED' })
        for (const { job } of [first, second, third]) await harness.inState(job.id, 'running')
        assert.equal(await harness.settle(second, COMPLETED), 'written', 'the position is still open')
      },
    ),
    ...each(
      ['not told where it was', 'told where it was'] as const,
      (how) => `a commit that was lost comes back for the claim of the same call, ${how}`,
      async (harness, how) => {
        const held = await harness.running()
        // Claims that find nothing must not look past the job that comes back.
        assert.deepEqual((await harness.cycle(held.worker, [], {})).leases, [])
        const told = how === 'told where it was' ? { job: held.job } : {}
        const settle = [{ ...settleRequest(held, CONFIRM), ...told }]
        const { settled, leases } = await harness.cycle(held.worker, settle, {})
        assert.deepEqual(settled, ['written'])
        assert.deepEqual(idsOf(leases.flatMap(({ jobs }) => jobs)), [held.job.id])
      },
    ),
    ...each(
      ['not told where it was', 'told where it was'] as const,
      (how) => `a call settles first and claims then, ${how}`,
      async (harness, how) => {
        const held = await harness.running()
        const waiting = await harness.put()
        const told = how === 'told where it was' ? { job: held.job } : {}
        const settle = [{ ...settleRequest(held, RELEASE), ...told }]
        const answer = await harness.cycle(held.worker, settle, {})
        assert.equal(answer.alive, true)
        assert.deepEqual(answer.settled, ['written'])
        const [lease] = answer.leases
        assert.ok(lease !== undefined && lease.token > held.token, 'under a greater token')
        assert.deepEqual(
          idsOf(lease.jobs),
          [held.job.id, waiting.id],
          'the released job is claimed again, at its place',
        )
        assert.equal(lease.jobs[0]?.attempt, 1)
      },
    ),
    'a full batch is settled in one call': async (harness) => {
      await harness.enqueue(newJobs(MAX_BATCH))
      const worker = await harness.worker()
      const held = await harness.claimAll(worker, { limit: MAX_BATCH })
      const requests = held.map((one) => settleRequest(one, COMPLETED))
      const { settled } = await harness.cycle(worker, requests, null)
      assert.equal(settled.filter((answer) => answer === 'written').length, MAX_BATCH)
    },
  },
}
