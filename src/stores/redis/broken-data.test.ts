/** If an entry that a script has to add already exists, the script reports that something else wrote it. */
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
    await redis.zadd(`${prefix}:{${prefix}}:${key}`, 0, packId(held!.job.id))
    redis.disconnect()
    await expect(harness.settle(held!, settlement)).rejects.toMatchObject({
      code: 'HF_STORE_CONTRACT',
      message: expect.stringContaining(`is in ${key} twice`),
    })
    await under.close()
  })
})
