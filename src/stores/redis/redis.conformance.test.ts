import { describe, test } from 'vitest'
import { openRedisStore, redisMissing, sharedRedis } from '../../../test/support/servers/redis.ts'
import { storeConformance } from '../conformance/index.ts'

describe.skipIf(redisMissing() !== '')('the store on Redis', () => {
  storeConformance({
    runner: { describe, test, skip: (name) => test.skip(name) },
    open: () => openRedisStore({ url: sharedRedis() }),
  })
})
