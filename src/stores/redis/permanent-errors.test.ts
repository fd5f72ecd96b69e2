/** Errors of Redis that last until an operator acts. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { freshPrefix, redisMissing, sharedRedis } from '../../../test/support/servers/redis.ts'
import { startRedis, type RedisServer } from '../../../test/support/servers/redis-server.ts'
import { eventually } from '../../../test/support/until.ts'
import { editOne, newFlushId, newJobs } from '../conformance/support.ts'
import { packId } from './ids.ts'
import { redisStore } from './index.ts'
import { explain } from './server-errors.ts'

/** Breaks the disk: the server may not write to its directory. */
async function breakDisk(server: RedisServer): Promise<Redis> {
  const redis = new Redis(server.url)
  await redis.config('SET', 'dir', '/proc')
  await redis.bgsave()
  await eventually(async () =>
    expect(await redis.info('persistence')).toContain('rdb_last_bgsave_status:err'),
  )
  return redis
}

describe.skipIf(redisMissing() !== '')('a Redis', () => {
  test('whose disk refuses writes is full, for now', async () => {
    await using server = await startRedis({
      settings: { save: '3600 1000000', 'enable-protected-configs': 'yes' },
    })
    const store = redisStore({ url: server.url, onNotice: () => undefined })
    await store.open()
    const redis = await breakDisk(server)
    const flush = { id: newFlushId(), jobs: newJobs(1) }
    await expect(store.enqueue(flush)).rejects.toMatchObject({
      code: 'HF_STORE_FULL',
      hint: expect.stringContaining('disk'),
    })
    await redis.config('SET', 'stop-writes-on-bgsave-error', 'no')
    await expect(store.enqueue(flush)).resolves.toHaveLength(1)
    redis.disconnect()
    await store.close()
  })
})

describe.skipIf(redisMissing() !== '')('a script', () => {
  test('that cannot read foreign data under its prefix does not look like an outage', async () => {
    const prefix = freshPrefix()
    const store = redisStore({ url: sharedRedis(), prefix, onNotice: () => undefined })
    await store.open()
    const [job] = newJobs(1)
    await store.enqueue({ id: newFlushId(), jobs: [job!] })
    const redis = new Redis(sharedRedis())
    await redis.hset(`${prefix}:{${prefix}}:past`, packId(job!.id), 'not JSON')
    redis.disconnect()
    const edited = editOne(store, job!.id, { due: { inMs: 0 } })
    await expect(edited).rejects.toMatchObject({
      code: 'HF_STORE_CONTRACT',
      message: expect.stringContaining('A script failed in Redis'),
    })
    await store.close()
  })
})

describe('an answer of Redis', () => {
  test.each([
    ['NOAUTH Authentication required.', 'HF_STORE_DENIED'],
    ['WRONGPASS invalid username-password pair or user is disabled.', 'HF_STORE_DENIED'],
    ["NOPERM this user has no permissions to run the 'evalsha' command", 'HF_STORE_DENIED'],
    ["OOM command not allowed when used memory > 'maxmemory'.", 'HF_STORE_FULL'],
    ['MISCONF Errors writing to the AOF file: No space left on device', 'HF_STORE_FULL'],
    ['ERR DB index is out of range', 'HF_STORE_MISSING'],
    ['ERR string exceeds maximum allowed size (proto-max-bulk-len)', 'HF_STORE_REFUSED'],
    ['HFREFUSED a settlement of an unknown kind', 'HF_STORE_REFUSED'],
    ['WRONGTYPE Operation against a key holding the wrong kind of value', 'HF_BAD_STORE'],
    ['LOADING Redis is loading the dataset in memory', 'HF_STORE_UNREACHABLE'],
    ["READONLY You can't write against a read only replica.", 'HF_STORE_UNREACHABLE'],
    ['NOREPLICAS Not enough good replicas to write.', 'HF_STORE_UNREACHABLE'],
    ['ERR user_script:30: HFBROKEN a job ends twice script: 4f1, on @user_script:30.', 'HF_STORE_CONTRACT'],
    ['ERR user_script:9: attempt to index a nil value script: 4f1, on @user_script:9.', 'HF_STORE_CONTRACT'],
    ['ERR Error running script (call to f_4f1): @user_script:3: user_script:3: oops', 'HF_STORE_CONTRACT'],
    [
      'ERR Error running script (call to f_4f1): @user_script:3: -LOADING Redis is loading',
      'HF_STORE_UNREACHABLE',
    ],
    ['READONLY You can not write. script: 4f1, on @user_script:3.', 'HF_STORE_UNREACHABLE'],
  ])('%s means %s', (message, code) => {
    const reply = Object.assign(new Error(message), { name: 'ReplyError' })
    expect(explain(reply)).toMatchObject({ code })
  })
})
