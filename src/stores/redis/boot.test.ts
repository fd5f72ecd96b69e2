/** What is looked at before a Redis is used. */
import { Redis } from 'ioredis'
import { describe, expect, test, vi } from 'vitest'
import { redisMissing } from '../../../test/support/servers/redis.ts'
import { startRedis, type RedisServer } from '../../../test/support/servers/redis-server.ts'
import { newFlushId, newJobs } from '../conformance/support.ts'
import { checkServer } from './boot.ts'
import type { Executor } from './executor.ts'
import { redisStore, type RedisStoreOptions } from './index.ts'

interface Opened {
  readonly notices: string[]
  readonly error: unknown
}

async function open(server: RedisServer, options: Partial<RedisStoreOptions> = {}): Promise<Opened> {
  const notices: string[] = []
  const store = redisStore({ url: server.url, onNotice: (line) => notices.push(line), ...options })
  const error = await store.open().then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  await store.close()
  return { notices, error }
}

/** An executor whose INFO says so. */
function saying(...lines: string[]): Executor {
  return {
    command: () => Promise.resolve(lines.join('\r\n')),
    script: () => Promise.reject(new Error('not asked for')),
    refuseWhenClosed: () => undefined,
    close: () => Promise.resolve(),
  }
}

const STRICT = { allowEviction: false, onNotice: () => undefined }

describe.skipIf(redisMissing() !== '')('a real server', () => {
  test('that evicts keys is refused, unless that is allowed by name', async () => {
    await using server = await startRedis({
      settings: { 'maxmemory-policy': 'allkeys-lru', appendonly: 'yes' },
    })
    const { error } = await open(server)
    expect(error).toMatchObject({
      code: 'HF_STORE_EVICTS',
      message: expect.stringContaining('allkeys-lru'),
      hint: expect.stringContaining('noeviction'),
    })
    const allowed = await open(server, { allowEviction: true })
    expect(allowed.error).toBeUndefined()
    expect(allowed.notices).toEqual([expect.stringContaining('jobs can be lost')])
  })

  test('without an append-only file is taken, with one notice', async () => {
    await using server = await startRedis()
    const { notices, error } = await open(server)
    expect(error).toBeUndefined()
    expect(notices).toEqual([expect.stringContaining('append-only')])
  })

  test('that keeps everything is taken without a word', async () => {
    await using server = await startRedis({ settings: { appendonly: 'yes' } })
    expect(await open(server)).toEqual({ notices: [], error: undefined })
  })

  test('of a cluster is refused', async () => {
    await using server = await startRedis({ settings: { 'cluster-enabled': 'yes' } })
    expect((await open(server)).error).toMatchObject({
      code: 'HF_BAD_STORE',
      message: expect.stringContaining('Cluster'),
    })
  })

  test('that forbids INFO is taken, with a notice', async () => {
    await using server = await startRedis()
    const redis = new Redis(server.url)
    await redis.acl('SETUSER', 'app', 'on', '>pw', '~*', '&*', '+@all', '-info')
    redis.disconnect()
    const connection = { username: 'app', password: 'pw' }
    const { notices, error } = await open(server, { connection })
    expect(error).toBeUndefined()
    expect(notices).toEqual([expect.stringContaining('INFO is forbidden')])
  })

  test('whose user may not publish takes jobs, and says no to who would listen', async () => {
    await using server = await startRedis()
    const redis = new Redis(server.url)
    await redis.acl('SETUSER', 'app', 'on', '>pw', '~*', 'resetchannels', '+@all')
    redis.disconnect()
    const connection = { username: 'app', password: 'pw' }
    const store = redisStore({ url: server.url, connection, onNotice: () => undefined })
    const jobs = newJobs(2, { queue: 'a' }).concat(newJobs(2, { queue: 'b' }))
    await store.enqueue({ id: newFlushId(), jobs })
    expect((await store.admin.queues()).map(({ counts }) => counts.ready)).toEqual([2, 2])
    await expect(store.subscribe(() => undefined)).rejects.toMatchObject({ code: 'HF_BAD_STORE' })
    await store.close()
  })

  test('that asks for another password is refused for good', async () => {
    await using server = await startRedis({ settings: { requirepass: 'right' } })
    for (const connection of [{}, { password: 'wrong' }]) {
      expect((await open(server, { connection })).error).toMatchObject({
        code: 'HF_BAD_STORE',
        hint: expect.stringContaining('password'),
      })
    }
    expect((await open(server, { connection: { password: 'right' } })).error).toBeUndefined()
  })
})

describe('a server that says', () => {
  test.each([
    ['redis_version:6.0.16', 'HF_BAD_STORE'],
    ['redis_version:5.0.0', 'HF_BAD_STORE'],
    ['redis_mode:cluster', 'HF_BAD_STORE'],
    ['loading:1', 'HF_STORE_UNREACHABLE'],
    ['role:slave', 'HF_STORE_UNREACHABLE'],
    ['maxmemory_policy:volatile-ttl', 'HF_STORE_EVICTS'],
  ])('%s is refused with %s', async (line, code) => {
    await expect(checkServer(saying(line), STRICT)).rejects.toMatchObject({ code })
  })

  test.each(['6.2.0', '7.4.1', '8.0.0', '10.0.1'])('redis_version:%s is taken', async (version) => {
    const facts = saying(`redis_version:${version}`, 'maxmemory_policy:noeviction', 'aof_enabled:1')
    await expect(checkServer(facts, STRICT)).resolves.toBeUndefined()
  })

  test('nothing about eviction is taken, with a notice', async () => {
    const onNotice = vi.fn()
    await checkServer(saying('redis_version:7.2.0'), { allowEviction: false, onNotice })
    expect(onNotice).toHaveBeenCalledExactlyOnceWith(expect.stringContaining('maxmemory-policy'))
  })
})

test('without the package, the error says what to install', async () => {
  vi.doMock('ioredis', () => {
    throw new Error('Cannot find package')
  })
  try {
    const store = redisStore({ url: 'redis://127.0.0.1:1' })
    await expect(store.open()).rejects.toMatchObject({
      code: 'HF_BAD_STORE',
      hint: expect.stringContaining('npm install ioredis'),
    })
    await store.close()
  } finally {
    vi.doUnmock('ioredis')
  }
})
