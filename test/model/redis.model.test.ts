import { describe, test } from 'vitest'
import { openRedisStore, redisMissing, sharedRedis } from '../support/servers/redis.ts'
import { runModelTest } from './run.ts'

describe.skipIf(redisMissing() !== '')('the store on Redis', () => {
  test('does what the model does', { timeout: 120_000 }, async () => {
    await runModelTest(() => openRedisStore({ url: sharedRedis(), frozen: true }), {
      numRuns: 15,
      shrink: false,
    })
  })
})
