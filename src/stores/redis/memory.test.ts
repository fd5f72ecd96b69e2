/** The server remembers the past as long as the contract requires, and no longer. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import {
  freshPrefix,
  openRedisStore,
  redisMissing,
  sharedRedis,
} from '../../../test/support/servers/redis.ts'
import {
  attemptRecord,
  COMPLETED,
  DAY_MS,
  Harness,
  LEASE_MS,
  newJobs,
  RELEASE,
  retention,
  settleRequest,
  uniqueWhile,
} from '../conformance/support.ts'

interface Opened {
  readonly harness: Harness
  /** How many of what. */
  readonly keys: () => Promise<string[]>
  readonly close: () => Promise<void>
}

async function open(): Promise<Opened> {
  const prefix = freshPrefix()
  const under = await openRedisStore({ url: sharedRedis(), prefix })
  const redis = new Redis(sharedRedis())
  const base = `${prefix}:{${prefix}}:`
  return {
    harness: new Harness(under),
    keys: async () => (await redis.keys(`${prefix}:*`)).map((key) => key.slice(base.length)).toSorted(),
    close: async () => {
      redis.disconnect()
      await under.close()
    },
  }
}

describe.skipIf(redisMissing() !== '')('a lease', () => {
  test('that is settled days after its claim is answered already all the same', async () => {
    const { harness, close } = await open()
    const held = await harness.running()
    await harness.advance(3 * DAY_MS)
    expect(await harness.settle(held, COMPLETED)).toBe('written')
    expect(await harness.settle(held, COMPLETED)).toBe('already')
    await harness.advance(3 * DAY_MS)
    await harness.store.upkeep.prune(retention(), 1)
    expect(await harness.settle(held, COMPLETED)).toBe('lost')
    await close()
  })

  test('that was taken away is told apart position by position', async () => {
    const { harness, close } = await open()
    await harness.enqueue(newJobs(2))
    const worker = await harness.worker()
    const [first, second] = await harness.claimAll(worker)
    await harness.settled(first!, COMPLETED)
    await harness.lose(worker)
    expect(await harness.settle(first!, COMPLETED)).toBe('already')
    expect(await harness.settle(second!, COMPLETED)).toBe('lost')
    await close()
  })
})

describe.skipIf(redisMissing() !== '')('nothing is left', () => {
  test('of jobs that are done and forgotten, but their queue and where the tokens stand', async () => {
    const { harness, keys, close } = await open()
    const { store } = harness
    for (const unique of [
      null,
      uniqueWhile('unfinished'),
      { ...uniqueWhile('ready', 'other'), hold: { forMs: 1_000 } },
    ])
      await harness.put({ unique })
    const worker = await harness.worker()
    await harness.claimAll(worker)
    await harness.advance(LEASE_MS * 2)
    await harness.rescue()
    await harness.passAndPromote(LEASE_MS)
    const again = await harness.worker()
    for (let left = 3; left > 0; left--)
      await harness.settled(await harness.claimOne(again, { suspects: true }), COMPLETED)
    await store.retire(again)
    await harness.advance(2 * DAY_MS)
    await store.upkeep.prune(retention({ completedMs: 1 }), 100)
    expect(await keys()).toEqual(['counts', 'gaps', 'queues', 'server', 'token'])
    await close()
  })

  test('of the records of a job that is forgotten, though nothing else ever happened to it', async () => {
    const { harness, keys, close } = await open()
    const held = await harness.running()
    const release = { ...settleRequest(held, RELEASE), record: attemptRecord(held) }
    await harness.cycle(held.worker, [release], null)
    expect(await keys()).toContain('attempts')
    const again = await harness.claimOne(held.worker)
    await harness.cycle(held.worker, [{ ...settleRequest(again, COMPLETED), forget: true }], null)
    const left = await keys()
    for (const key of ['jobs', 'past', 'attempts']) expect(left).not.toContain(key)
    await close()
  })
})
