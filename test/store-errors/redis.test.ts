/** What a Redis says no to, as users of Holdfast see it. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { holdfast } from 'holdfast'
import { redisStore } from 'holdfast/redis'
import { freshPrefix, redisMissing, sharedRedis } from '../support/servers/redis.ts'
import { startRedis } from '../support/servers/redis-server.ts'

describe.skipIf(redisMissing() !== '')('a Redis', () => {
  test('that takes a right away is told of at once, is no outage, and is used again with the right', async () => {
    await using server = await startRedis()
    const redis = new Redis(server.url)
    await redis.call('ACL', 'SETUSER', 'app', 'on', '>pw', '~*', '&*', '+@all')
    const url = server.url.replace('//', '//app:pw@')
    const hf = holdfast({ store: redisStore({ url, onNotice: () => undefined }), logger: false })
    const told: string[] = []
    hf.on('store.down', () => void told.push('store.down'))
    hf.on('store.unusable', () => void told.push('store.unusable'))
    const job = hf.job({ name: 'job', run: () => 'done' })
    await job.enqueue()
    await hf.work()
    await redis.call('ACL', 'SETUSER', 'app', '-@scripting')
    await expect(job.enqueue()).rejects.toMatchObject({ code: 'HF_STORE_DENIED' })
    await redis.call('ACL', 'SETUSER', 'app', '+@scripting')
    const handle = await job.enqueue()
    expect(await handle.result()).toBe('done')
    expect(told).toEqual(['store.unusable'])
    redis.disconnect()
    await hf.close()
  })

  test('whose data something else changed is told of at once, and is no outage', async () => {
    const prefix = freshPrefix()
    const store = redisStore({ url: sharedRedis(), prefix, onNotice: () => undefined })
    const hf = holdfast({ store, logger: false, timeout: '5m' })
    const down: unknown[] = []
    hf.on('store.down', (event) => void down.push(event))
    const handle = await hf.job({ name: 'job', run: () => undefined }).enqueue()
    const redis = new Redis(sharedRedis())
    await redis.hset(`${prefix}:{${prefix}}:counts`, 'cancelled:default', -5)
    redis.disconnect()
    await expect(handle.cancel()).rejects.toMatchObject({
      code: 'HF_STORE_CONTRACT',
      message: 'The data in Redis is inconsistent: cancelled jobs of default are -4',
      hint: expect.stringContaining('prefix'),
    })
    expect(down).toEqual([])
    await hf.close()
  })
})
