/**
 * Commits of a handler: its effect and the completion of its job are both there or neither, and a job never completes
 * without its effect. For stores that have `transactions`.
 */
import assert from 'node:assert/strict'
import type { CommitRequest, CompletedSettlement, Transactions } from '../store.ts'
import { skipAll, type Topic } from './suite.ts'
import { CONFIRM, newJobs, RELEASE, type Harness, type Held } from './support.ts'

const DONE: CompletedSettlement = { type: 'completed', result: '{"paid":1}', resultDropped: false }

function transactionsOf({ store }: Harness): Transactions {
  assert.ok(store.transactions !== undefined, 'the store has transactions')
  return store.transactions
}

function requestOf({ worker, token, position }: Held): CommitRequest {
  return { worker, token, position, runMs: () => 12, forget: false }
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => assert.fail('it resolves'),
    (error: unknown) => error,
  )
}

export const commitTopic: Topic = {
  name: 'commit',
  tests: {
    'a commit completes its job, and confirming it changes nothing': async (harness) => {
      const held = await harness.running()
      await transactionsOf(harness).commit(requestOf(held), async () => DONE)
      const completed = await harness.inState(held.job.id, 'completed')
      assert.equal(completed.result, DONE.result)
      assert.equal(await harness.settle(held, CONFIRM), 'already')
      assert.equal(await harness.settle(held, CONFIRM), 'already', 'nor does a repeat')
      assert.deepEqual(await harness.record(held.job.id), completed)
    },
    'a commit under a shared lease is confirmed while its neighbours still run': async (harness) => {
      await harness.enqueue(newJobs(3))
      const [first, second, third] = await harness.claimAll(await harness.worker())
      assert.ok(first !== undefined && second !== undefined && third !== undefined)
      await transactionsOf(harness).commit(requestOf(second), async () => DONE)
      assert.equal(await harness.settle(second, CONFIRM), 'already')
      await harness.inState(second.job.id, 'completed')
      for (const { job } of [first, third]) await harness.inState(job.id, 'running')
    },
    'a job whose commit is not there is not completed by confirming it: it runs again': async (harness) => {
      const held = await harness.running()
      const lost = new Error('the server went away')
      assert.equal(
        await rejection(transactionsOf(harness).commit(requestOf(held), () => Promise.reject(lost))),
        lost,
      )
      assert.equal(await harness.settle(held, CONFIRM), 'written')
      assert.equal((await harness.inState(held.job.id, 'ready')).attempt, 0, 'the attempt is handed back')
      const again = await harness.claimOne(await harness.worker())
      assert.deepEqual([again.job.id, again.job.attempt], [held.job.id, 1])
      assert.equal(await harness.settle(held, CONFIRM), 'already', 'a repeat does not touch the new attempt')
      await harness.inState(held.job.id, 'running')
    },
    'a commit is refused once the job is settled, and undoes nothing': async (harness) => {
      const held = await harness.running()
      await harness.settled(held, RELEASE)
      const refused = await rejection(transactionsOf(harness).commit(requestOf(held), async () => DONE))
      assert.equal((refused as { code?: unknown }).code, 'HF_LEASE_LOST')
      await harness.inState(held.job.id, 'ready')
    },
  },
}

/** For the `skip` of a store without transactions. */
export const withoutTransactions = skipAll(commitTopic, 'the store has no transactions')
