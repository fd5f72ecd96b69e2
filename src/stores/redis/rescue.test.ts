import { describe, test } from 'vitest'
import { CROSSINGS } from '../../../test/mutants/redis/crossings.ts'
import { openAuditedStore, redisMissing, sharedRedis } from '../../../test/support/servers/redis.ts'

describe.skipIf(redisMissing() !== '')('a rescue on Redis', () => {
  test.each(Object.entries(CROSSINGS))('%s', async (_, crossing) => {
    await crossing((onScript) => openAuditedStore({ url: sharedRedis(), onScript }))
  })
})
