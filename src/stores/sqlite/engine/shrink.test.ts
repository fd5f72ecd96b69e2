/** The file of the store gets smaller after a rush, a little with each prune. */
import { beforeEach, describe, expect, test } from 'vitest'
import { StepWorld, type Ask } from '../../../../test/support/sqlite-steps.ts'
import { newFlushId, newJobs, retention } from '../../conformance/support.ts'

let world: StepWorld
beforeEach(() => {
  world = new StepWorld()
})

function pages(): number {
  const row = world.database.prepare('pragma page_count').get() as { readonly page_count: number }
  return row.page_count
}

/** Enqueues and cancels so many jobs of 40 KB each, of which a page holds a tenth. */
function rush(ask: Ask, count: number): void {
  ask('enqueue', { id: newFlushId(), jobs: newJobs(count, { payload: JSON.stringify('x'.repeat(40_000)) }) })
  let after = null
  do after = ask('change', { states: ['ready'] }, { type: 'cancel', reason: null }, 500, after).next
  while (after !== null)
}

const prune = (ask: Ask): number => ask('prune', retention({ cancelledMs: 0 }), 1_000).pruned

describe('after a rush', () => {
  test('each prune gives some pages back, until a reserve is left', () => {
    const ask = world.as(null)
    rush(ask, 600)
    const most = pages()
    expect(most).toBeGreaterThan(6_000)
    expect(prune(ask)).toBe(600)
    // Now and then a page goes besides that only says where others are.
    expect(most - pages()).toBeGreaterThanOrEqual(500)
    expect(most - pages()).toBeLessThan(505)
    for (let nth = 0; nth < 20; nth++) prune(ask)
    const least = pages()
    expect(least).toBeLessThan(4_300)
    expect(least).toBeGreaterThan(4_000)
    prune(ask)
    expect(pages()).toBe(least)
  })

  test('a file that is not ours stays as large as it is', () => {
    world.ownsFile = false
    const ask = world.as(null)
    rush(ask, 600)
    const most = pages()
    prune(ask)
    expect(pages()).toBe(most)
  })
})

test('a small store is left alone', () => {
  const ask = world.as(null)
  rush(ask, 100)
  const most = pages()
  prune(ask)
  expect(pages()).toBe(most)
})
