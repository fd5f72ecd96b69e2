import { describe, test } from 'vitest'
import { openAuditedStore, redisMissing, sharedRedis } from '../../../test/support/servers/redis.ts'
import { PAGED_TOPICS, storeConformance, withoutTransactions } from '../conformance/index.ts'

const runner = { describe, test, skip: (name: string) => test.skip(name) }

describe.skipIf(redisMissing() !== '')('the store on Redis', () => {
  storeConformance({
    runner,
    open: () => openAuditedStore({ url: sharedRedis() }),
    skip: withoutTransactions,
  })
})

describe.skipIf(redisMissing() !== '')('the store on Redis with pages that end after three jobs', () => {
  storeConformance({
    runner,
    open: () => openAuditedStore({ url: sharedRedis(), budget: 3 }),
    topics: PAGED_TOPICS,
  })
})
