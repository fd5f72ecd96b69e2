/** Every mutant of the Lua scripts is noticed by the tests that it names, and they pass without it. */
import { describe, expect, test } from 'vitest'
import { redisMissing, sharedRedis } from '../support/servers/redis.ts'
import { BUDGET_MS, hunt, testsOn } from './hunt.ts'
import { REDIS_MUTANTS } from './redis/mutants.ts'
import { redisSite } from './redis/site.ts'

test('there are at least 15, each with a name of its own', () => {
  expect(REDIS_MUTANTS.length).toBeGreaterThanOrEqual(15)
  expect(new Set(REDIS_MUTANTS.map(({ name }) => name)).size).toBe(REDIS_MUTANTS.length)
  for (const { caughtBy } of REDIS_MUTANTS) expect(caughtBy).not.toEqual([])
})

describe.skipIf(redisMissing() !== '')('a mutant of the Lua scripts is noticed', () => {
  test.each(REDIS_MUTANTS)('$name', async (mutant) => {
    for (const { title, caught, ms } of await hunt(mutant, redisSite(sharedRedis()))) {
      expect(caught, `"${title}" passes`).not.toBeNull()
      expect(ms).toBeLessThan(BUDGET_MS)
    }
  })

  test('and one that the server cannot parse is an error', async () => {
    const find = '  remember(lease.token, settled)\n'
    const mutant = { name: 'syntax', file: 'leases', find, replace: '  remember(\n', caughtBy: ['unused'] }
    await expect(hunt(mutant, redisSite(sharedRedis()))).rejects.toThrow('does not load')
  })

  test('and the scripts as they are pass the same tests', async () => {
    const tests = testsOn(redisSite(sharedRedis()), (_, text) => text)
    for (const title of new Set(REDIS_MUTANTS.flatMap(({ caughtBy }) => caughtBy))) await tests.get(title)?.()
  })
})
