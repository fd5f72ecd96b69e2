/** Heartbeats and leases: who counts as alive, and what a worker learns about what it holds. */
import assert from 'node:assert/strict'
import type { Token, WorkerId } from '../../job/ids.ts'
import type { Topic } from './suite.ts'
import {
  COMPLETED,
  idsOf,
  LEASE_MS,
  newJobs,
  newWorkerId,
  retry,
  SECOND_MS,
  UNKNOWN_TOKEN,
  type Harness,
} from './support.ts'

const MOST_OF_LEASE_MS = LEASE_MS - 10 * SECOND_MS

async function tokensOf(
  harness: Harness,
  worker: WorkerId,
  undelivered: readonly Token[] = [],
): Promise<Token[]> {
  const answer = await harness.store.heartbeat({ worker, undelivered })
  assert.equal(answer.alive, true, 'the worker is alive')
  return [...answer.tokens]
}

export const leasesTopic: Topic = {
  name: 'heartbeat and leases',
  tests: {
    'a heartbeat lists all leases in the name of its worker, and no others': async (harness) => {
      await harness.enqueue(newJobs(3))
      const worker = await harness.worker()
      assert.deepEqual(await tokensOf(harness, worker), [])
      const first = await harness.claimOne(worker)
      const second = await harness.claimOne(worker)
      await harness.claimOne(await harness.worker())
      assert.deepEqual(
        (await tokensOf(harness, worker)).toSorted((a, b) => a - b),
        [first.token, second.token],
      )
    },
    'heartbeats keep a worker alive for as long as they come': async (harness) => {
      const held = await harness.running()
      for (let beat = 0; beat < 4; beat++) {
        await harness.advance(MOST_OF_LEASE_MS)
        await tokensOf(harness, held.worker)
        assert.deepEqual(await harness.rescue(), { workers: [], jobs: [] })
      }
      assert.equal(await harness.settle(held, COMPLETED), 'written')
    },
    'a heartbeat renews a worker that has expired but was not rescued': async (harness) => {
      const held = await harness.running()
      await harness.advance(10 * LEASE_MS)
      assert.deepEqual(await tokensOf(harness, held.worker), [held.token])
      assert.deepEqual(await harness.rescue(), { workers: [], jobs: [] }, 'it is renewed')
      assert.equal(await harness.settle(held, COMPLETED), 'written')
    },
    'a claim does not renew its worker, not even the first from a queue': async (harness) => {
      const worker = await harness.worker()
      await harness.store.heartbeat({ worker, undelivered: [], nth: 1, atOnce: 5 })
      await harness.advance(MOST_OF_LEASE_MS)
      const { id } = await harness.put()
      assert.deepEqual(await harness.claimIds(worker), [id])
      await harness.advance(LEASE_MS - MOST_OF_LEASE_MS + SECOND_MS)
      assert.deepEqual(idsOf((await harness.rescue()).jobs), [id])
    },
    'each worker expires by the lease that it registered with': async (harness) => {
      await harness.enqueue(newJobs(2))
      const brief = await harness.worker(LEASE_MS)
      const long = await harness.worker(10 * LEASE_MS)
      const [lost, kept] = [await harness.claimOne(brief), await harness.claimOne(long)]
      const { workers, jobs } = await harness.lose(brief)
      assert.deepEqual(workers, [brief])
      assert.deepEqual(idsOf(jobs), [lost.job.id])
      assert.equal(await harness.settle(kept, COMPLETED), 'written')
    },
    'a rescued worker hears that it is not alive and claims nothing, which differs from empty': async (
      harness,
    ) => {
      const held = await harness.running()
      await harness.lose(held.worker)
      const { alive, tokens } = await harness.store.heartbeat({ worker: held.worker, undelivered: [] })
      assert.deepEqual({ alive, tokens }, { alive: false, tokens: [] })
      const waiting = await harness.put()
      assert.deepEqual(await harness.cycle(held.worker, [], {}), { alive: false, settled: [], leases: [] })
      await harness.inState(waiting.id, 'ready')
      const other = await harness.worker()
      const empty = await harness.cycle(other, [], { queue: 'empty' })
      assert.deepEqual(empty, { alive: true, settled: [], leases: [] }, 'empty is another answer')
      assert.deepEqual(await harness.claimIds(other), [waiting.id], 'a new incarnation claims')
    },
    'a heartbeat does not bring a rescued worker back': async (harness) => {
      const worker = await harness.worker()
      await harness.lose(worker)
      for (let beat = 0; beat < 2; beat++) {
        assert.equal((await harness.store.heartbeat({ worker, undelivered: [] })).alive, false)
      }
    },
    'a worker that nobody registered, or that retired, is not alive': async (harness) => {
      const worker = await harness.worker()
      await harness.store.retire(worker)
      for (const gone of [newWorkerId(), worker]) {
        assert.equal((await harness.store.heartbeat({ worker: gone, undelivered: [] })).alive, false)
      }
    },
    'registering again changes nothing about what the worker holds': async (harness) => {
      const held = await harness.running()
      await harness.store.register(held.worker, LEASE_MS)
      assert.deepEqual(await tokensOf(harness, held.worker), [held.token])
      assert.equal(await harness.settle(held, COMPLETED), 'written')
    },
    'retiring is safe to repeat, also for a worker that was never there': async (harness) => {
      const worker = await harness.worker()
      await harness.store.retire(worker)
      await harness.store.retire(worker)
      await harness.store.retire(newWorkerId())
    },
    'an undelivered lease is released: claimable at once, its attempt handed back, its token worth nothing':
      async (harness) => {
        const jobs = newJobs(2)
        await harness.enqueue(jobs)
        const worker = await harness.worker()
        const [first, second] = await harness.claimAll(worker)
        assert.ok(first !== undefined && second !== undefined)
        assert.deepEqual(await tokensOf(harness, worker, [first.token]), [])
        assert.equal((await harness.inState(first.job.id, 'ready')).attempt, 0)
        assert.equal(await harness.settle(first, COMPLETED), 'lost', 'before it is claimed again')
        const again = await harness.claimAll(worker)
        assert.deepEqual(
          again.map(({ job }) => [job.id, job.attempt, job.crashes]),
          jobs.map(({ id }) => [id, 1, 0]),
          'both are claimed again, in their old order and without a mark',
        )
        assert.equal(await harness.settle(second, COMPLETED), 'lost', 'after it is claimed again')
        assert.ok(again.every(({ token }) => token > first.token))
      },
    'only what is open in an undelivered lease is released': async (harness) => {
      await harness.enqueue(newJobs(3))
      const worker = await harness.worker()
      const [first, second, third] = await harness.claimAll(worker)
      assert.ok(first !== undefined && second !== undefined && third !== undefined)
      const completed = await harness.settled(first, COMPLETED)
      const retried = await harness.settled(third, retry())
      await tokensOf(harness, worker, [first.token])
      assert.deepEqual(await harness.record(first.job.id), completed)
      assert.deepEqual(await harness.record(third.job.id), retried)
      await harness.inState(second.job.id, 'ready')
    },
    'a worker cannot release leases of another, and unknown leases are ignored': async (harness) => {
      const held = await harness.running()
      const other = await harness.worker()
      assert.deepEqual(await tokensOf(harness, other, [held.token, UNKNOWN_TOKEN]), [])
      assert.deepEqual(await tokensOf(harness, held.worker), [held.token])
      assert.equal(await harness.settle(held, COMPLETED), 'written')
    },
    'naming one undelivered lease leaves the other leases alone': async (harness) => {
      await harness.enqueue(newJobs(2))
      const worker = await harness.worker()
      const lost = await harness.claimOne(worker)
      const known = await harness.claimOne(worker)
      assert.deepEqual(await tokensOf(harness, worker, [lost.token]), [known.token])
      assert.deepEqual(
        await tokensOf(harness, worker, [lost.token]),
        [known.token],
        'a repeat finds nothing to do',
      )
      assert.equal(await harness.settle(known, COMPLETED), 'written')
    },
  },
}
