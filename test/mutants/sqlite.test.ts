/** Every mutant of the embedded store's SQL is noticed by the tests that it names, and they pass without it. */
import { describe, expect, test } from 'vitest'
import { BUDGET_MS, hunt, testsOn } from './hunt.ts'
import { SQLITE_MUTANTS } from './sqlite/mutants.ts'
import { sqliteSite } from './sqlite/site.ts'

test('there are at least 12, each with a name of its own', () => {
  expect(SQLITE_MUTANTS.length).toBeGreaterThanOrEqual(12)
  expect(new Set(SQLITE_MUTANTS.map(({ name }) => name)).size).toBe(SQLITE_MUTANTS.length)
  for (const { caughtBy } of SQLITE_MUTANTS) expect(caughtBy).not.toEqual([])
})

describe('a mutant of the SQL of the embedded store is noticed', () => {
  test.each(SQLITE_MUTANTS)('$name', async (mutant) => {
    for (const { title, caught, ms } of await hunt(mutant, sqliteSite)) {
      expect(caught, `"${title}" passes`).not.toBeNull()
      expect(ms).toBeLessThan(BUDGET_MS)
    }
  })

  test('and one that SQLite cannot parse is an error', async () => {
    const find = 'delete from holdfast_job where seq = ?;'
    const mutant = {
      name: 'syntax',
      file: 'jobs',
      find,
      replace: 'delete holdfast_job;',
      caughtBy: ['unused'],
    }
    await expect(hunt(mutant, sqliteSite)).rejects.toThrow('does not load')
  })

  test('and the SQL as it is passes the same tests', async () => {
    const tests = testsOn(sqliteSite, (_, text) => text)
    for (const title of new Set(SQLITE_MUTANTS.flatMap(({ caughtBy }) => caughtBy)))
      await tests.get(title)?.()
  })
})
