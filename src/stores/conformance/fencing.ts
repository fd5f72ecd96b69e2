/** The fence: only the holder of the lease settles. */
import assert from 'node:assert/strict'
import type { Token } from '../../job/ids.ts'
import { each, type Topic } from './suite.ts'
import {
  COMPLETED,
  EVERY_SETTLEMENT,
  LEASE_MS,
  newWorkerId,
  retry,
  SECOND_MS,
  settleRequest,
  UNKNOWN_TOKEN,
  type Harness,
  type Held,
} from './support.ts'

/** Settles with something wrong about the request: nothing may change. */
async function settlesNothing(harness: Harness, held: Held, wrong: Partial<Held>): Promise<void> {
  const before = await harness.record(held.job.id)
  for (const settlement of EVERY_SETTLEMENT) {
    assert.equal(await harness.settle({ ...held, ...wrong }, settlement), 'lost', settlement.type)
  }
  assert.deepEqual(await harness.record(held.job.id), before, 'nothing was written')
  assert.equal(await harness.settle(held, COMPLETED), 'written', 'the holder still settles')
}

export const fencingTopic: Topic = {
  name: 'fencing',
  tests: {
    'another worker settles nothing with the token': async (harness) => {
      await settlesNothing(harness, await harness.running(), { worker: await harness.worker() })
    },
    'a worker that nobody registered settles nothing with the token': async (harness) => {
      await settlesNothing(harness, await harness.running(), { worker: newWorkerId() })
    },
    'a token that was never handed out settles nothing': async (harness) => {
      await settlesNothing(harness, await harness.running(), { token: UNKNOWN_TOKEN })
    },
    'tokens that cannot exist settle nothing': async (harness) => {
      const held = await harness.running()
      await settlesNothing(harness, held, { token: 0 as Token })
    },
    'a position beyond the lease settles nothing': async (harness) => {
      await settlesNothing(harness, await harness.running(), { position: 1 })
    },
    'a negative position settles nothing': async (harness) => {
      await settlesNothing(harness, await harness.running(), { position: -1 })
    },
    'an expired lease that nobody rescued still settles': async (harness) => {
      const held = await harness.running()
      await harness.advance(10 * LEASE_MS)
      const answer = await harness.cycle(held.worker, [settleRequest(held, COMPLETED)], null)
      assert.deepEqual(answer.settled, ['written'])
      assert.equal(answer.alive, true, 'expired, but not rescued')
      await harness.inState(held.job.id, 'completed')
    },
    'a retired worker settles what it still holds, until a rescue': async (harness) => {
      const held = await harness.running()
      await harness.store.retire(held.worker)
      const answer = await harness.cycle(held.worker, [settleRequest(held, COMPLETED)], {})
      assert.deepEqual(answer, { alive: false, settled: ['written'], leases: [] })
      await harness.inState(held.job.id, 'completed')
    },
    ...each(
      EVERY_SETTLEMENT,
      ({ type }) => `a rescued lease settles nothing while the job waits: ${type}`,
      async (harness, settlement) => {
        const held = await harness.running()
        await harness.lose(held.worker)
        const before = await harness.inState(held.job.id, 'scheduled')
        const answer = await harness.cycle(held.worker, [settleRequest(held, settlement)], {})
        assert.deepEqual(answer, { alive: false, settled: ['lost'], leases: [] })
        assert.deepEqual(await harness.record(held.job.id), before)
      },
    ),
    ...each(
      EVERY_SETTLEMENT,
      ({ type }) => `a rescued lease does not overwrite what the new owner made of the job: ${type}`,
      async (harness, settlement) => {
        const zombie = await harness.running()
        await harness.lose(zombie.worker)
        await harness.passAndPromote(2 * SECOND_MS)
        const owner = await harness.claimOne(await harness.worker(), { suspects: true })
        assert.equal(owner.job.id, zombie.job.id)
        const running = await harness.record(owner.job.id)
        assert.equal(await harness.settle(zombie, settlement), 'lost', 'while the new owner runs it')
        assert.deepEqual(await harness.record(owner.job.id), running)
        const done = await harness.settled(owner, {
          type: 'completed',
          result: '"new"',
          resultDropped: false,
        })
        assert.equal(await harness.settle(zombie, settlement), 'lost', 'after the new owner settled it')
        assert.deepEqual(await harness.record(owner.job.id), done)
      },
    ),
    'a rescued lease is lost for ever, also after upkeep has forgotten much': async (harness) => {
      const zombie = await harness.running()
      await harness.lose(zombie.worker)
      const days = 3
      await harness.advance(days * 86_400_000)
      await harness.store.upkeep.prune(
        { completedMs: 1, deadMs: 1, cancelledMs: 1, maxCompleted: 0, maxDead: 0, maxCancelled: 0 },
        1_000,
      )
      // A process may be frozen for days; "already" would tell it that its work had been written.
      assert.equal(await harness.settle(zombie, COMPLETED), 'lost')
    },
    'an old token settles nothing after a retry and a new claim of its own worker': async (harness) => {
      const first = await harness.running()
      await harness.settled(first, retry(SECOND_MS))
      await harness.passAndPromote(2 * SECOND_MS)
      const second = await harness.claimOne(first.worker)
      const running = await harness.record(second.job.id)
      assert.equal(await harness.settle(first, COMPLETED), 'already')
      assert.deepEqual(await harness.record(second.job.id), running, 'the new attempt goes on')
      assert.equal(await harness.settle(second, COMPLETED), 'written')
    },
    'a settle that crosses a rescue is written wholly or lost wholly': async (harness) => {
      const held = await harness.running()
      await harness.advance(LEASE_MS + SECOND_MS)
      const [answer, rescued] = await Promise.all([harness.settle(held, COMPLETED), harness.rescue()])
      const { state } = await harness.record(held.job.id)
      if (answer === 'written') {
        assert.equal(state, 'completed', 'the settle came first')
        assert.deepEqual(rescued.jobs, [])
      } else {
        assert.equal(answer, 'lost')
        assert.equal(state, 'scheduled', 'the rescue came first')
      }
    },
  },
}
