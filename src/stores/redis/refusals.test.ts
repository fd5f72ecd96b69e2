import { describe, test } from 'vitest'
import { REFUSALS } from '../../../test/mutants/redis/refusals.ts'
import { redisMissing, sharedRedis } from '../../../test/support/servers/redis.ts'

describe.skipIf(redisMissing() !== '')('in a script of the Redis store', () => {
  test.each(Object.entries(REFUSALS))('%s', (_, refuse) => refuse(sharedRedis()))
})
