/** What something else changed or deleted is reported as such: it is not an outage, and no call is repeated because of it. */
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import {
  freshPrefix,
  openRedisStore,
  redisMissing,
  sharedRedis,
} from '../../../test/support/servers/redis.ts'
import type { Settlement } from '../../job/settlement.ts'
import { COMPLETED, DEAD, Harness, newJobs } from '../conformance/support.ts'
import { packId } from './ids.ts'

const keyOf = (prefix: string, key: string): string => `${prefix}:{${prefix}}:${key}`

const CASES: readonly (readonly [key: string, settlement: Settlement])[] = [
  ['completed', COMPLETED],
  ['dead', DEAD],
  ['dead_ids', DEAD],
]

describe.skipIf(redisMissing() !== '')('a running job that is listed as ended', () => {
  test.each(CASES)('in %s is noticed when it ends', async (key, settlement) => {
    const prefix = freshPrefix()
    const under = await openRedisStore({ url: sharedRedis(), prefix })
    const harness = new Harness(under)
    await harness.enqueue(newJobs(1))
    const [held] = await harness.claimAll(await harness.worker())
    const redis = new Redis(sharedRedis())
    await redis.zadd(keyOf(prefix, key), 0, packId(held!.job.id))
    redis.disconnect()
    await expect(harness.settle(held!, settlement)).rejects.toMatchObject({
      code: 'HF_STORE_CONTRACT',
      message: expect.stringContaining(`is in ${key} twice`),
    })
    await under.close()
  })
})

describe.skipIf(redisMissing() !== '')('an answer that no script gives', () => {
  test('is noticed: a claimed job without a record', async () => {
    const prefix = freshPrefix()
    const under = await openRedisStore({ url: sharedRedis(), prefix })
    const harness = new Harness(under)
    const [job] = newJobs(1)
    await harness.enqueue([job!])
    const redis = new Redis(sharedRedis())
    await redis.hdel(keyOf(prefix, 'jobs'), packId(job!.id))
    redis.disconnect()
    await expect(harness.claim(await harness.worker())).rejects.toMatchObject({
      code: 'HF_STORE_CONTRACT',
      message: expect.stringContaining('was claimed and has no record'),
    })
    await under.close()
  })

  test('is noticed: a dead job without an error', async () => {
    const prefix = freshPrefix()
    const under = await openRedisStore({ url: sharedRedis(), prefix })
    const harness = new Harness(under)
    const { id } = await harness.finished(DEAD)
    const redis = new Redis(sharedRedis())
    await redis.hdel(keyOf(prefix, 'past'), packId(id))
    redis.disconnect()
    await expect(harness.record(id)).rejects.toMatchObject({
      code: 'HF_STORE_CONTRACT',
      message: expect.stringContaining('is dead without an error'),
    })
    await under.close()
  })

  test('is noticed: a claimed job whose record is not JSON', async () => {
    const prefix = freshPrefix()
    const under = await openRedisStore({ url: sharedRedis(), prefix })
    const harness = new Harness(under)
    const { id } = await harness.put()
    const redis = new Redis(sharedRedis())
    await redis.hset(keyOf(prefix, 'jobs'), packId(id), 'nonsense\n')
    redis.disconnect()
    await expect(harness.claim(await harness.worker())).rejects.toMatchObject({
      code: 'HF_STORE_CONTRACT',
      message: expect.stringContaining('not the JSON that was written'),
    })
    await under.close()
  })
})
