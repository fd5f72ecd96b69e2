/** Tells a dead connection to Redis from a slow server. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { redisMissing } from '../../../test/support/servers/redis.ts'
import { startRedis, type RedisServer } from '../../../test/support/servers/redis-server.ts'
import { startProxy } from '../../../test/support/servers/tcp-proxy.ts'
import { systemClock } from '../../std/clock.ts'
import { newFlushId, newJobs } from '../conformance/support.ts'
import type { Store } from '../store.ts'
import { redisStore } from './index.ts'

async function openStore(url: string): Promise<Store> {
  const store = redisStore({ url, onNotice: () => undefined })
  await store.open()
  return store
}

async function put(store: Store): Promise<void> {
  await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
}

async function pidOf({ url }: RedisServer): Promise<number> {
  const redis = new Redis(url)
  const pid = /process_id:(\d+)/.exec(await redis.info('server'))?.[1]
  redis.disconnect()
  return Number(pid)
}

describe.skipIf(redisMissing() !== '')('a connection to Redis that is silent', () => {
  test('is abandoned long before the command timeout if the server answers on another one', async () => {
    await using server = await startRedis()
    await using proxy = await startProxy(server.port)
    const store = await openStore(proxy.url(server.url))
    await put(store)
    // The existing connection never speaks again; all others do.
    proxy.mode = 'silent'
    proxy.mode = 'pass'
    const begun = systemClock.monotonicMs()
    await expect(put(store)).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    expect(systemClock.monotonicMs() - begun).toBeLessThan(5_000)
    await put(store)
    expect(proxy.connections).toBeLessThanOrEqual(2)
    await store.close()
  })

  test('is kept with its commands if the server is only slow', async () => {
    await using server = await startRedis()
    await using proxy = await startProxy(server.port)
    const store = await openStore(proxy.url(server.url))
    await put(store)
    const pid = await pidOf(server)
    process.kill(pid, 'SIGSTOP')
    const slow = put(store)
    try {
      // The watch asked on a second connection, got no answer, and asked on a third one.
      await proxy.changed.until(() => proxy.connections === 3)
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await slow
    expect((await store.admin.queues())[0]?.counts.ready).toBe(2)
    await store.close()
  })
})
