/** Settles that no client of ours sends: the script refuses them before it writes anything. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { freshPrefix, redisMissing, sharedRedis } from '../../../test/support/servers/redis.ts'
import { newFlushId, newJobs, newWorkerId } from '../conformance/support.ts'
import { redisStore } from './index.ts'
import { readScripts } from './scripts.ts'
import { oneShard } from './shards.ts'

const cycle = readScripts().get('cycle')

describe.skipIf(redisMissing() !== '')('the script that settles', () => {
  test.each([
    ['a kind that it does not know', '["z",1]'],
    ['a kind without its value', '["r"]'],
    ['a value that is null', '["r",null]'],
    ['a detail that is not a list', '"x"'],
    ['a detail that is not JSON', '[['],
  ])('refuses %s, and writes nothing of the call', async (_, detail) => {
    const prefix = freshPrefix()
    const store = redisStore({ url: sharedRedis(), prefix, onNotice: () => undefined })
    const redis = new Redis(sharedRedis())
    await store.open()
    const jobs = newJobs(3)
    await store.enqueue({ id: newFlushId(), jobs })
    const worker = newWorkerId()
    await store.register(worker, 30_000)
    const claim = { queue: 'default', limit: 2, suspects: false }
    const [first] = (await store.cycle({ worker, settle: [], claim })).leases
    const [second] = (await store.cycle({ worker, settle: [], claim })).leases
    const { keys } = oneShard(prefix).control
    // The first lease is fine; the second has a settle that is fine, and this one.
    const settles = [first!.token, 'c', 1, 0, ',1,0,null', second!.token, 'm', 1, 0, detail]
    const args = [worker, '', 0, 0, 1, 2, ...settles]
    const sent = redis.call('EVAL', [cycle.text, keys.length, ...keys, ...args])
    await expect(sent).rejects.toThrow(/HFREFUSED/)
    for (const { id } of jobs) expect((await store.admin.get(id))?.state).toBe('running')
    redis.disconnect()
    await store.close()
  })
})
