/** Every mutant of the worker that the simulation cannot notice is noticed by the tests that it names. */
import { describe, expect, test } from 'vitest'
import { huntByTests } from './worker/hunt.ts'
import { WORKER_MUTANTS } from './worker/mutants.ts'

describe('a mutant of the worker is noticed', { timeout: 120_000, concurrent: true }, () => {
  test.each(WORKER_MUTANTS)('$name', async (mutant) => {
    expect(await huntByTests(mutant)).not.toBeNull()
  })
})
