/**
 * Proves that the simulation notices bugs: each mutant is caught by the seed and the rule that a hunt of 500 seeds recorded,
 * and the unmodified code passes the same seeds. After a change to either, hunt again with
 * `npm run mutants -- --kind simulation --write`.
 */
import { describe, expect, test } from 'vitest'
import { judge } from '../simulation/judge.ts'
import caught from '../simulation/mutants/caught.json' with { type: 'json' }
import { hunt, HUNT_MINUTES, type Caught } from '../simulation/mutants/hunt.ts'
import { MUTANTS } from '../simulation/mutants/mutants.ts'

const known: Readonly<Record<string, Caught>> = caught

test('each of at least 25 mutants was caught within 500 seeds', () => {
  expect(MUTANTS.length).toBeGreaterThanOrEqual(25)
  expect(Object.keys(known)).toEqual(MUTANTS.map(({ name }) => name))
  for (const { name, fromSeed = 1 } of MUTANTS) expect(known[name]?.seed).toBeLessThan(fromSeed + 500)
})

describe('a mutant is caught', { timeout: 120_000, concurrent: true }, () => {
  test.each(MUTANTS)('$name ($from)', async (mutant) => {
    const expected = known[mutant.name]
    if (expected === undefined) throw new Error('it was never hunted')
    const { seed } = expected
    expect(await hunt(mutant, { from: seed, seeds: 1, minutes: HUNT_MINUTES, timeoutMs: 100_000 })).toEqual(
      expected,
    )
  })
})

test('the code as it is breaks no rule at the same seeds', { timeout: 240_000 }, async () => {
  for (const seed of new Set(Object.values(known).map((one) => one.seed))) {
    const { verdict } = await judge(seed, HUNT_MINUTES)
    expect(verdict.violationCount, `seed ${seed}`).toBe(0)
  }
})
