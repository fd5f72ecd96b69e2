/** Which jobs of a lost worker are suspects: those that can have been running, by what it promised at its registration. */
import assert from 'node:assert/strict'
import type { JobId, WorkerId } from '../../job/ids.ts'
import type { RescueAnswer } from '../store.ts'
import type { Topic } from './suite.ts'
import {
  cancelOne,
  COMPLETED,
  idsOf,
  LEASE_MS,
  newJobs,
  sameIds,
  SECOND_MS,
  uniqueWhile,
  type Harness,
  type Held,
} from './support.ts'

const toReady = ({ jobs }: RescueAnswer): JobId[] => idsOf(jobs.filter(({ to }) => to === 'ready'))
const toScheduled = ({ jobs }: RescueAnswer): JobId[] => idsOf(jobs.filter(({ to }) => to === 'scheduled'))

/** A worker that runs so many jobs at once, and all that it has claimed: a lease for each number. */
async function holding(
  harness: Harness,
  atOnce: number,
  ...leases: readonly number[]
): Promise<{ worker: WorkerId; held: Held[] }> {
  await harness.enqueue(newJobs(leases.reduce((sum, size) => sum + size, 0)))
  const worker = await harness.worker(LEASE_MS, atOnce)
  const held: Held[] = []
  for (const limit of leases) held.push(...(await harness.claimAll(worker, { limit })))
  return { worker, held }
}

const idOf = ({ job }: Held): JobId => job.id

export const suspectsTopic: Topic = {
  name: 'suspects',
  tests: {
    'a job that cannot have been running is ready at once, as if it had never been claimed': async (
      harness,
    ) => {
      const { worker, held } = await holding(harness, 2, 5)
      const before = await Promise.all(held.map(({ job }) => harness.record(job.id)))
      const answer = await harness.lose(worker)
      const innocent = held.slice(2).map(idOf)
      sameIds(toScheduled(answer), held.slice(0, 2).map(idOf), 'the first two can have been running')
      sameIds(toReady(answer), innocent, 'the others cannot')
      for (const [index, id] of innocent.entries()) {
        const told = answer.jobs.find((job) => job.id === id)
        assert.deepEqual({ crashes: told?.crashes, error: told?.error }, { crashes: 0, error: null })
        const record = await harness.inState(id, 'ready')
        const { attempt, crashes, error, attempts, dueAt } = record
        const was = { attempt: 0, crashes: 0, error: null, attempts: [], dueAt: before[index + 2]?.dueAt }
        assert.deepEqual({ attempt, crashes, error, attempts, dueAt }, was)
      }
      assert.deepEqual(await harness.claimIds(await harness.worker()), innocent, 'in order, in one lease')
    },
    'leases count in the order of their tokens, and settled jobs not at all': async (harness) => {
      const { worker, held } = await holding(harness, 3, 2, 4)
      const [first, second, ...rest] = held
      assert.ok(first !== undefined && second !== undefined)
      await harness.settled(first, COMPLETED)
      const answer = await harness.lose(worker)
      sameIds(toScheduled(answer), [idOf(second), ...rest.slice(0, 2).map(idOf)], 'the first three')
      sameIds(toReady(answer), rest.slice(2).map(idOf), 'the rest')
    },
    'a rescue in small steps counts the same': async (harness) => {
      const { held } = await holding(harness, 3, 2, 2, 2)
      await harness.advance(LEASE_MS + SECOND_MS)
      const answers: RescueAnswer[] = []
      for (let step = 0; step < 4; step++) answers.push(await harness.rescue(1))
      sameIds(answers.flatMap(toScheduled), held.slice(0, 3).map(idOf), 'the first three')
      sameIds(answers.flatMap(toReady), held.slice(3).map(idOf), 'the rest')
    },
    'a rescue in small steps takes every job of a worker that gave no number for a suspect': async (
      harness,
    ) => {
      await harness.enqueue(newJobs(6))
      const worker = await harness.worker()
      const ids: JobId[] = []
      for (let lease = 0; lease < 3; lease++) ids.push(...(await harness.claimIds(worker, { limit: 2 })))
      await harness.advance(LEASE_MS + SECOND_MS)
      const answers: RescueAnswer[] = []
      for (let step = 0; step < 4; step++) answers.push(await harness.rescue(2))
      sameIds(answers.flatMap(toScheduled), ids, 'any of them may have been running')
      assert.deepEqual(answers.flatMap(toReady), [])
      assert.ok((answers[0]?.jobs.length ?? 0) < ids.length, 'the first step took a part of them')
    },
    'a heartbeat raises or lowers the number': async (harness) => {
      const { worker, held } = await holding(harness, 1, 4)
      await harness.store.heartbeat({ worker, undelivered: [], atOnce: 3 })
      await harness.store.heartbeat({ worker, undelivered: [] })
      const answer = await harness.lose(worker)
      sameIds(toScheduled(answer), held.slice(0, 3).map(idOf), 'as it was told last')
      const other = await holding(harness, 4, 3)
      await harness.store.heartbeat({ worker: other.worker, undelivered: [], atOnce: 1 })
      assert.equal(toScheduled(await harness.lose(other.worker)).length, 1)
    },
    'a heartbeat that arrives after a later one leaves the number as it is': async (harness) => {
      const { worker, held } = await holding(harness, 1, 4)
      const beat = (nth: number, atOnce: number) =>
        harness.store.heartbeat({ worker, undelivered: [], nth, atOnce })
      await beat(2, 4)
      await beat(3, 3)
      const late = await beat(1, 1)
      assert.deepEqual(late.tokens, [held[0]?.token], 'it is answered like any other')
      sameIds(toScheduled(await harness.lose(worker)), held.slice(0, 3).map(idOf), 'as the latest said')
    },
    'each worker has its own number, and one that gave none may have run all': async (harness) => {
      const strict = await holding(harness, 1, 3)
      await harness.enqueue(newJobs(3))
      const unknown = await harness.worker()
      const ids = await harness.claimIds(unknown)
      const answer = await harness.lose(strict.worker, unknown)
      sameIds(toScheduled(answer), [...strict.held.slice(0, 1).map(idOf), ...ids], 'one and all')
    },
    'registering again leaves the number as it is': async (harness) => {
      const { worker, held } = await holding(harness, 1, 3)
      await harness.store.heartbeat({ worker, undelivered: [], atOnce: 2 })
      await harness.store.register(worker, LEASE_MS, 1)
      sameIds(toScheduled(await harness.lose(worker)), held.slice(0, 2).map(idOf), 'as the heartbeat said')
    },
    'jobs that a retired worker still holds may all have been running': async (harness) => {
      const { worker, held } = await holding(harness, 1, 3)
      await harness.store.retire(worker)
      sameIds(toScheduled(await harness.rescue()), held.map(idOf), 'nobody knows what it had started')
    },
    'a job to be cancelled that cannot have been running is cancelled without a crash': async (harness) => {
      const { worker, held } = await holding(harness, 1, 2)
      const last = held[1]
      assert.ok(last !== undefined)
      await cancelOne(harness.store, last.job.id, 'not needed')
      const { jobs } = await harness.lose(worker)
      const told = jobs.find(({ id }) => id === last.job.id)
      assert.deepEqual({ to: told?.to, error: told?.error }, { to: 'cancelled', error: null })
      const record = await harness.inState(last.job.id, 'cancelled')
      assert.deepEqual(
        { reason: record.reason, crashes: record.crashes, attempts: record.attempts },
        { reason: 'not needed', crashes: 0, attempts: [] },
      )
    },
    'a suspect that was not started stays what it was': async (harness) => {
      const id = await harness.suspect()
      const worker = await harness.worker(LEASE_MS, 0)
      await harness.claimOne(worker, { suspects: true })
      assert.deepEqual(toReady(await harness.lose(worker)), [id])
      const record = await harness.inState(id, 'ready')
      assert.deepEqual(
        { crashes: record.crashes, attempts: record.attempts.length },
        { crashes: 1, attempts: 1 },
      )
      const next = await harness.worker()
      assert.deepEqual(await harness.claim(next), [], 'claimed alone, as before')
      assert.deepEqual(await harness.claimIds(next, { suspects: true }), [id])
    },
    'a job that is released by a rescue keeps its unique key': async (harness) => {
      const unique = uniqueWhile('unfinished')
      await harness.put({ unique })
      const worker = await harness.worker(LEASE_MS, 0)
      await harness.claimOne(worker)
      await harness.lose(worker)
      const [answer] = await harness.enqueue(newJobs(1, { unique }))
      assert.equal(answer?.outcome, 'duplicate')
    },
    'a released job makes workers look': async (harness) => {
      const { worker } = await holding(harness, 0, 1)
      const queues: string[] = []
      const stop = await harness.store.subscribe((hint) => {
        if (hint.type === 'ready') queues.push(hint.queue)
      })
      await harness.lose(worker)
      await harness.waitFor('a hint about the queue', () => queues.includes('default'))
      await stop()
    },
  },
}
