import { afterAll, beforeAll, describe, test } from 'vitest'
import { openAuditedStore, openRedisStore, redisMissing, sharedRedis } from '../support/servers/redis.ts'
import { startRedisCluster, type RedisCluster } from '../support/servers/redis-cluster.ts'
import { runModelTest } from './run.ts'

const RUNS = { numRuns: 15, shrink: false }

describe.skipIf(redisMissing() !== '')('the store on Redis', () => {
  test(
    'does what the model does, and has counted and indexed what a recount finds',
    { timeout: 120_000 },
    async () => {
      await runModelTest(() => openAuditedStore({ url: sharedRedis(), frozen: true }), RUNS)
    },
  )
})

describe.skipIf(redisMissing() !== '')('the store on a Redis Cluster', () => {
  let cluster: RedisCluster
  beforeAll(async () => {
    cluster = await startRedisCluster()
  }, 60_000)
  afterAll(() => cluster.dispose())

  test('does what the model does', { timeout: 120_000 }, async () => {
    // A shard knows only what a worker has claimed of its own queue.
    const options = { ...RUNS, startsByQueue: true }
    await runModelTest(() => openRedisStore({ url: cluster.url, frozen: true }), options)
  })
})
