import { expect, test } from 'vitest'
import type { WorkerId } from '../../../job/ids.ts'
import type { Run } from '../run.ts'
import type { Shard, Shards } from '../shards.ts'
import { ClusterWorkerCalls } from './cluster-worker-calls.ts'

test('a heartbeat that crosses the first claim from a queue raises the number there, too', async () => {
  const worker = 'worker' as WorkerId
  const control: Shard = { keys: ['control:'] }
  const queue: Shard = { keys: ['queue:'] }
  const shards: Shards = {
    control,
    of: () => queue,
    all: () => Promise.resolve([queue]),
    know: () => Promise.resolve(),
  }
  const during = { claim: (): Promise<unknown> => Promise.resolve() }
  const said: string[] = []
  const answers: Record<string, unknown> = { heartbeat: [1, [], [], []], cycle: [1, [], []], register: 1 }
  const run = (async (shard, name, args) => {
    if (name !== 'lease_of_worker') {
      if (shard === queue) said.push(`${name} ${args[name === 'register' ? 3 : 1]}`)
      return answers[name]
    }
    const answer = [30_000, 20_000, '5']
    // The other call is answered before this one reaches the shard of the queue.
    await during.claim()
    return answer
  }) as Run
  const calls = new ClusterWorkerCalls(run, shards)
  await calls.register(worker, 30_000, 5)
  during.claim = () => calls.heartbeat({ worker, undelivered: [], atOnce: 9, nth: 1 })
  await calls.cycle({ worker, settle: [], claim: { queue: 'queue', limit: 9, suspects: true } })
  expect(said).toEqual(['register 5', 'heartbeat 9', 'cycle queue'])
})
