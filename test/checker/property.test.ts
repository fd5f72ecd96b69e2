import { describe, expect, test } from 'vitest'
import { check } from './check.ts'
import { explain } from './explain.ts'
import type { HistoryEvent } from './history.ts'
import { BOUNDS } from './testing/broken.ts'
import { MUTATIONS } from './testing/mutations.ts'
import { Chance } from './testing/random.ts'
import { Reference } from './testing/reference.ts'

const SEEDS = Array.from({ length: 18 }, (_, index) => index + 1)
const OPTIONS = { ...BOUNDS, starveMs: 30_000 }

// In some, workers die and leases are lost all the time; others are almost undisturbed.
function historyOf(seed: number): HistoryEvent[] {
  return [...new Reference({ seed, steps: 1_500, faults: [0.01, 0.1, 0.3][seed % 3] ?? 0 })]
}

describe('a random history of a correct store', () => {
  test('breaks no rule', () => {
    for (const seed of SEEDS) {
      const { violations } = check(historyOf(seed), OPTIONS)
      expect(violations.map(explain), `seed ${seed}`).toEqual([])
    }
  })

  test('breaks no rule either when the store keeps its moves to itself', () => {
    for (const seed of SEEDS) {
      const { violations } = check(withoutMoves(historyOf(seed)), OPTIONS)
      expect(violations.map(explain), `seed ${seed}`).toEqual([])
    }
  })
})

describe('a single change to it is noticed:', () => {
  const histories = SEEDS.map((seed) => ({ seed, events: historyOf(seed) }))

  test.each(MUTATIONS)('$name', ({ mutate, noticedAs }) => {
    let changed = 0
    for (const { seed, events } of histories) {
      const mutated = mutate(events, new Chance(seed))
      if (mutated === null) continue
      changed++
      const told = check(mutated, OPTIONS).violations.map((violation) => violation.rule)
      expect(
        told.some((rule) => noticedAs.includes(rule)),
        `seed ${seed}: told ${told.join(', ') || 'nothing'}`,
      ).toBe(true)
    }
    // A mutation that applies to no history proves nothing.
    expect(changed).toBeGreaterThan(2)
  })
})

function withoutMoves(events: readonly HistoryEvent[]): HistoryEvent[] {
  return events
    .filter(({ type }) => type !== 'move' && type !== 'setting' && type !== 'lease')
    .map((event) => (event.type === 'begin' ? { ...event, moves: false } : event))
}
