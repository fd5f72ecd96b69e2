/** The checks of a Redis before it is used. */
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { describe, expect, test, vi } from 'vitest'
import { redisMissing } from '../../../test/support/servers/redis.ts'
import { startRedis, type RedisServer } from '../../../test/support/servers/redis-server.ts'
import { eventually } from '../../../test/support/until.ts'
import { newFlushId, newJobs, newWorkerId } from '../conformance/support.ts'
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

/** An executor whose INFO has these lines. */
function saying(...lines: string[]): Executor {
  return {
    command: () => Promise.resolve(lines.join('\r\n')),
    script: () => Promise.reject(new Error('not asked for')),
    refuseWhenClosed: () => undefined,
    close: () => Promise.resolve(),
  }
}

const STRICT = { allowEviction: false, db: 0, onNotice: () => undefined }

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

  test('without an append-only file is accepted, with one notice', async () => {
    await using server = await startRedis()
    const { notices, error } = await open(server)
    expect(error).toBeUndefined()
    expect(notices).toEqual([expect.stringContaining('append-only')])
  })

  test('that keeps everything is accepted without a notice', async () => {
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

  test('that forbids INFO is accepted, with a notice', async () => {
    await using server = await startRedis()
    const redis = new Redis(server.url)
    await redis.acl('SETUSER', 'app', 'on', '>pw', '~*', '&*', '+@all', '-info')
    redis.disconnect()
    const connection = { username: 'app', password: 'pw' }
    const { notices, error } = await open(server, { connection })
    expect(error).toBeUndefined()
    expect(notices).toEqual([expect.stringContaining('Redis forbids INFO')])
  })

  test('whose user may not publish accepts jobs and refuses to listen', async () => {
    await using server = await startRedis()
    const redis = new Redis(server.url)
    await redis.acl('SETUSER', 'app', 'on', '>pw', '~*', 'resetchannels', '+@all')
    redis.disconnect()
    const connection = { username: 'app', password: 'pw' }
    const store = redisStore({ url: server.url, connection, onNotice: () => undefined })
    const jobs = newJobs(2, { queue: 'a' }).concat(newJobs(2, { queue: 'b' }))
    await store.enqueue({ id: newFlushId(), jobs })
    expect((await store.admin.queues()).map(({ counts }) => counts.ready)).toEqual([2, 2])
    await expect(store.subscribe(() => undefined)).rejects.toMatchObject({ code: 'HF_STORE_DENIED' })
    await store.close()
  })

  test('whose user has the documented rights supports the whole store', async () => {
    await using server = await startRedis({ settings: { appendonly: 'yes' } })
    const redis = new Redis(server.url)
    const rights = '~holdfast:* &holdfast:wake* +@all -@admin -@dangerous +info'.split(' ')
    await redis.call('ACL', 'SETUSER', 'app', 'on', '>pw', ...rights)
    redis.disconnect()
    const notices: string[] = []
    const connection = { username: 'app', password: 'pw', db: 1 }
    const store = redisStore({ url: server.url, connection, onNotice: (line) => notices.push(line) })
    await store.open()
    const [job] = newJobs(1)
    const heard = new Promise((resolve) => void store.subscribe(resolve).then(() => put()))
    const put = () => store.enqueue({ id: newFlushId(), jobs: [job!] })
    expect(await heard).toEqual({ type: 'ready', queue: 'default' })
    expect((await store.admin.list({ limit: 10, after: null })).jobs).toHaveLength(1)
    await store.upkeep.promote(10)
    await store.upkeep.rescue(10)
    expect(notices).toEqual([])
    await store.close()
  })

  test.each([
    { channels: ['&holdfast:wake*'], state: 'running' },
    // As documented before there were hand-overs.
    { channels: ['&holdfast:wake'], state: 'ready' },
  ])('whose user may use $channels leaves a new job $state', async ({ channels, state }) => {
    await using server = await startRedis({ settings: { appendonly: 'yes' } })
    const redis = new Redis(server.url)
    const rights = ['~holdfast:*', ...channels, '+@all', '-@admin', '-@dangerous', '+info']
    await redis.call('ACL', 'SETUSER', 'app', 'on', '>pw', ...rights)
    redis.disconnect()
    const connection = { username: 'app', password: 'pw' }
    const store = redisStore({ url: server.url, connection, onNotice: () => undefined })
    await store.open()
    await store.subscribe(() => undefined)
    const worker = newWorkerId()
    await store.register(worker, 30_000)
    const claim = { queue: 'default', limit: 5, suspects: false }
    const offer = { nth: 1, jobs: 5, queues: ['default'], forMs: 60_000, received: [] }
    const { offeredAt } = await store.cycle({ worker, settle: [], claim, offer })
    expect(offeredAt !== undefined).toBe(state === 'running')
    await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
    const { jobs } = await store.admin.list({ limit: 10, after: null })
    expect(jobs.map((job) => job.state)).toEqual([state])
    await store.close()
  })

  test('that wants another password is refused for good', async () => {
    await using server = await startRedis({ settings: { requirepass: 'right' } })
    for (const connection of [{}, { password: 'wrong' }]) {
      expect((await open(server, { connection })).error).toMatchObject({
        code: 'HF_STORE_DENIED',
        hint: expect.stringContaining('password'),
      })
    }
    expect((await open(server, { connection: { password: 'right' } })).error).toBeUndefined()
  })
})

describe.skipIf(redisMissing() !== '')('the database of the URL', () => {
  async function keysIn(server: RedisServer, db: number): Promise<number> {
    const redis = new Redis(`${server.url}/${db}`)
    const size = await redis.dbsize()
    redis.disconnect()
    return size
  }

  test('that the server does not have is refused: nothing lands in database 0', async () => {
    await using server = await startRedis()
    const store = redisStore({ url: `${server.url}/16`, onNotice: () => undefined })
    const missing = { code: 'HF_STORE_MISSING', hint: expect.stringContaining('databases') }
    await expect(store.open()).rejects.toMatchObject(missing)
    await expect(store.enqueue({ id: newFlushId(), jobs: newJobs(1) })).rejects.toMatchObject(missing)
    await expect(store.subscribe(() => undefined)).rejects.toMatchObject(missing)
    await store.close()
    expect(await keysIn(server, 0)).toBe(0)
  })

  test.each([
    ['its path', (url: string) => ({ url: `${url}/15` })],
    ['its query', (url: string) => ({ url: `${url}?db=15` })],
    ['the options beside it', (url: string) => ({ url, connection: { db: 15 } })],
  ])('is taken from %s, and found again after the connection was lost', async (_, options) => {
    await using server = await startRedis({ settings: { appendonly: 'yes' } })
    const store = redisStore({ onNotice: () => undefined, ...options(server.url) })
    await store.open()
    await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
    const redis = new Redis(server.url)
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    redis.disconnect()
    const flush = { id: newFlushId(), jobs: newJobs(1) }
    // Repeat the same flush, because the lost connection is noticed some time later.
    await eventually(() => store.enqueue(flush))
    expect((await store.admin.queues())[0]?.counts.ready).toBe(2)
    await store.close()
    expect(await keysIn(server, 0)).toBe(0)
    expect(await keysIn(server, 15)).toBeGreaterThan(0)
  })

  test('that a proxy did not select is noticed', async () => {
    const executor = saying('redis_version:7.2.0', 'maxmemory_policy:noeviction', 'id=7 addr=x db=0 sub=0')
    await expect(checkServer(executor, { ...STRICT, db: 3 })).rejects.toMatchObject({
      code: 'HF_STORE_MISSING',
      message: expect.stringMatching(/database 0 .*database 3/),
    })
  })

  test('of a socket is taken from its query', async () => {
    await using server = await startRedis({ settings: { unixsocket: 'redis.sock' } })
    const redis = new Redis(server.url)
    const [, folder] = (await redis.config('GET', 'dir')) as [string, string]
    redis.disconnect()
    const path = join(folder, 'redis.sock')
    for (const query of ['', '?db=2']) {
      const store = redisStore({ url: `redis+unix://${path}${query}`, onNotice: () => undefined })
      await store.open()
      await store.enqueue({ id: newFlushId(), jobs: newJobs(1) })
      await store.close()
    }
    expect(await keysIn(server, 0)).toBeGreaterThan(0)
    expect(await keysIn(server, 2)).toBeGreaterThan(0)
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

  test('nothing about eviction is accepted, with a notice', async () => {
    const onNotice = vi.fn()
    await checkServer(saying('redis_version:7.2.0'), { allowEviction: false, db: 0, onNotice })
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
