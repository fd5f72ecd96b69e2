/** Every mutant of the code around the embedded store's SQL is noticed by the tests that it names. */
import { describe, expect, test } from 'vitest'
import { SQLITE_CODE_MUTANTS } from './sqlite/code-mutants.ts'
import { huntByTests } from './worker/hunt.ts'

describe('a mutant of the code of the embedded store is noticed', { timeout: 120_000 }, () => {
  test.each(SQLITE_CODE_MUTANTS)('$name', async (mutant) => {
    expect(await huntByTests(mutant)).not.toBeNull()
  })
})
