/** The tests that a mutant of the SQL names fail with it and pass without it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../support/servers/database.ts'
import { BUDGET_MS, hunt, testsOn } from './hunt.ts'
import { POSTGRES_MUTANTS } from './postgres/mutants.ts'
import { postgresSite } from './postgres/site.ts'

test('there are at least 15, each with a name of its own', () => {
  expect(POSTGRES_MUTANTS.length).toBeGreaterThanOrEqual(15)
  expect(new Set(POSTGRES_MUTANTS.map(({ name }) => name)).size).toBe(POSTGRES_MUTANTS.length)
  for (const { caughtBy } of POSTGRES_MUTANTS) expect(caughtBy).not.toEqual([])
})

describe('a mutant of the SQL is noticed', { timeout: 3 * BUDGET_MS }, () => {
  let database: Database
  beforeAll(async () => {
    database = await freshDatabase(sharedPostgres(18))
  })
  afterAll(() => database.drop())

  test.each(POSTGRES_MUTANTS)('$name', async (mutant) => {
    for (const { title, caught, ms } of await hunt(mutant, postgresSite(database.url))) {
      expect(caught, `"${title}" passes`).not.toBeNull()
      expect(ms).toBeLessThan(BUDGET_MS)
    }
  })

  test.each([
    ['syntax', 'v_mask := coalesce(v_pack.mask', 'v_mask := := coalesce(v_pack.mask', 'does not load'],
    ['a name', 'history.token = p_token for update', 'history.lease = p_token for update', 'does not run'],
  ])('and one that the server does not accept is an error: %s', async (name, find, replace, message) => {
    const caughtBy = ['a forgotten job is in no list and no count, and cannot be cancelled']
    const mutant = { name, file: 'forget_packed.sql', find, replace, caughtBy }
    await expect(hunt(mutant, postgresSite(database.url))).rejects.toThrow(message)
  })

  test('and the SQL as it is passes the same tests', { timeout: 10 * BUDGET_MS }, async () => {
    const tests = testsOn(postgresSite(database.url), (_, text) => text)
    for (const title of new Set(POSTGRES_MUTANTS.flatMap(({ caughtBy }) => caughtBy)))
      await tests.get(title)?.()
  })
})
