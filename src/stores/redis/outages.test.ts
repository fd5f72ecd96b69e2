/** A Redis that loses its scripts, falls silent, is restarted, or is missing. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { freshPrefix, redisMissing, sharedRedis } from '../../../test/support/servers/redis.ts'
import { startRedis } from '../../../test/support/servers/redis-server.ts'
import { startProxy } from '../../../test/support/servers/tcp-proxy.ts'
import { newFlushId, newJob, newJobs } from '../conformance/support.ts'
import type { Store, WakeUp } from '../store.ts'
import { redisStore, type RedisStoreOptions } from './index.ts'

function storeAt(url: string, options: Partial<RedisStoreOptions> = {}): Store {
  return redisStore({ url, prefix: freshPrefix(), onNotice: () => undefined, ...options })
}

async function put(store: Store): Promise<void> {
  await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
}

/** Repeats the enqueue until the server is back. */
async function putAgain(store: Store): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      return await put(store)
    } catch (error) {
      expect(error).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
      if (tries === 50) throw error
    }
  }
}

describe.skipIf(redisMissing() !== '')('the store on Redis', () => {
  test('continues after the server has lost the scripts', async () => {
    await using server = await startRedis()
    const store = storeAt(server.url)
    await store.open()
    await put(store)
    const redis = new Redis(server.url)
    await redis.script('FLUSH')
    await Promise.all([put(store), put(store), store.admin.queues()])
    redis.disconnect()
    expect((await store.admin.queues())[0]?.counts.ready).toBe(3)
    await store.close()
  })

  test('fails a call at its deadline if nobody answers, and continues on a new connection', async () => {
    await using proxy = await startProxy(Number(new URL(sharedRedis()).port))
    const store = storeAt(proxy.url(sharedRedis()), { commandTimeoutMs: 200 })
    await store.open()
    await put(store)
    proxy.mode = 'silent'
    await expect(put(store)).rejects.toMatchObject({
      code: 'HF_STORE_UNREACHABLE',
      message: expect.stringContaining('200 ms'),
    })
    proxy.mode = 'pass'
    await putAgain(store)
    await store.close()
  })

  test('works again after a restart of the server, with every job that it had accepted', async () => {
    await using server = await startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } })
    const store = storeAt(server.url)
    await store.open()
    await put(store)
    await server.kill()
    await expect(put(store)).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    await server.start()
    await putAgain(store)
    expect((await store.admin.queues())[0]?.counts.ready).toBe(2)
    await store.close()
  })

  test('does not send what waited for the server for longer than its caller', async () => {
    await using server = await startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } })
    const store = storeAt(server.url)
    await store.open()
    await server.kill()
    // The pause before the next connection grows to more than a second.
    for (let tries = 0; tries < 7; tries++)
      await expect(put(store)).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    const abandoned = store.enqueue({ id: newFlushId(), jobs: newJobs(1) }, 50)
    const refused = expect(abandoned).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    await Promise.all([server.start(), refused])
    await putAgain(store)
    expect((await store.admin.queues())[0]?.counts.ready).toBe(1)
    await store.close()
  })

  test('receives wake-ups again after its connection was cut', async () => {
    await using proxy = await startProxy(Number(new URL(sharedRedis()).port))
    const prefix = freshPrefix()
    const listening = storeAt(proxy.url(sharedRedis()), { prefix })
    const store = storeAt(sharedRedis(), { prefix })
    const hints: WakeUp[] = []
    await listening.subscribe((hint) => hints.push(hint))
    proxy.cutAll()
    for (let round = 0; hints.length === 0 && round < 10_000; round++)
      await store.enqueue({ id: newFlushId(), jobs: [newJob({ queue: `q${round}` })] })
    expect(hints[0]?.type).toBe('ready')
    await Promise.all([listening.close(), store.close()])
  })

  test('a missing server is an error at once, and a close does not wait', async () => {
    const server = await startRedis()
    await server.dispose()
    const store = storeAt(server.url)
    await expect(store.open()).rejects.toMatchObject({
      code: 'HF_STORE_UNREACHABLE',
      message: expect.stringContaining('ECONNREFUSED'),
    })
    await expect(store.subscribe(() => undefined)).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    await store.close()
    await expect(store.open()).rejects.toMatchObject({ code: 'HF_CLOSED' })
  })

  test('a close ends even if nobody answers', async () => {
    await using proxy = await startProxy(Number(new URL(sharedRedis()).port))
    const store = storeAt(proxy.url(sharedRedis()))
    await store.open()
    await store.subscribe(() => undefined)
    proxy.mode = 'silent'
    const hanging = put(store)
    const rejected = expect(hanging).rejects.toMatchObject({ code: 'HF_CLOSED' })
    await store.close()
    await rejected
  })
})
