/** More of the simulation than `npm test` has time for: the seeds behind those of its own. */
import { expect, test } from 'vitest'
import { explainFailure, judge } from '../simulation/judge.ts'
import { BATCH_FROM_SEED, SCHEDULE_FROM_SEED, WIDE_FROM_SEED } from '../simulation/plan.ts'

const MINUTES = 3

const RANGES = [
  { from: 41, to: 125 },
  { from: WIDE_FROM_SEED + 10, to: WIDE_FROM_SEED + 49 },
  { from: SCHEDULE_FROM_SEED + 10, to: SCHEDULE_FROM_SEED + 24 },
  { from: BATCH_FROM_SEED + 10, to: BATCH_FROM_SEED + 24 },
]

test.each(RANGES)('seeds $from to $to keep every rule', { timeout: 240_000 }, async ({ from, to }) => {
  for (let seed = from; seed <= to; seed++) {
    const judged = await judge(seed, MINUTES)
    expect(judged.verdict.violationCount, explainFailure(judged)).toBe(0)
  }
})
