import { afterAll, beforeAll, describe, test } from 'vitest'
import { openRedisStore, redisMissing } from '../../../../test/support/servers/redis.ts'
import { startRedisCluster, type RedisCluster } from '../../../../test/support/servers/redis-cluster.ts'
import { storeConformance } from '../../conformance/index.ts'

describe.skipIf(redisMissing() !== '')('the store on a Redis Cluster', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startRedisCluster()
  }, 60_000)
  afterAll(() => cluster.dispose())

  storeConformance({
    runner: { describe, test, skip: (name) => test.skip(name) },
    open: () => openRedisStore({ url: cluster.url }),
    skip: {
      'a key is one for all queues, and replace moves its holder to another':
        'on a cluster each queue has unique keys of its own',
    },
  })
})
