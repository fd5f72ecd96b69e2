import { afterAll, beforeAll, describe, test } from 'vitest'
import { openRedisStore, redisMissing } from '../../../../test/support/servers/redis.ts'
import { startRedisCluster, type RedisCluster } from '../../../../test/support/servers/redis-cluster.ts'
import { PAGED_TOPICS, storeConformance, withoutTransactions } from '../../conformance/index.ts'

describe.skipIf(redisMissing() !== '')('the store on a Redis Cluster', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startRedisCluster()
  }, 60_000)
  afterAll(() => cluster.dispose())

  const runner = { describe, test, skip: (name: string) => test.skip(name) }
  storeConformance({
    runner,
    open: () => openRedisStore({ url: cluster.url }),
    skip: {
      ...withoutTransactions,
      'a key is one for all queues, and replace moves its holder to another':
        'on a cluster each queue has unique keys of its own',
    },
  })

  describe('with pages that end after three jobs', () => {
    storeConformance({
      runner,
      open: () => openRedisStore({ url: cluster.url, budget: 3 }),
      topics: PAGED_TOPICS,
    })
  })
})
