import { describe, expect, test } from 'vitest'
import { check } from './check.ts'
import { explain } from './explain.ts'
import { BOUNDS } from './testing/broken.ts'
import { Reference } from './testing/reference.ts'

const SEEDS = Array.from({ length: 60 }, (_, index) => index + 1)

describe('a random history of a correct store', () => {
  test('breaks no rule', () => {
    for (const seed of SEEDS) {
      const history = [...new Reference({ seed, steps: 1_500, faults: seed % 3 === 0 ? 0.1 : 0.02 })]
      const { violations } = check(history, { ...BOUNDS, starveMs: 30_000 })
      expect(violations.map(explain), `seed ${seed}`).toEqual([])
    }
  })
})
