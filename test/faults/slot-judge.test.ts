import { describe, expect, test } from 'vitest'
import { judgeSlots, type FiredSlot, type SlotEvidence } from './support/slot-judge.ts'

const SCHEDULES = ['a', 'b']
const SLOTS = [10_000, 11_000, 12_000, 13_000, 14_000, 15_000]

/** Of two schedules, each slot 50 ms late. */
function evidence(changes: Partial<SlotEvidence> = {}): SlotEvidence {
  const jobs = SCHEDULES.flatMap((schedule) => SLOTS.map((slot) => fired(schedule, slot)))
  return {
    schedules: SCHEDULES,
    everyMs: 1_000,
    fromMs: 9_500,
    toMs: 15_200,
    jobs,
    told: jobs,
    faultsAtMs: [],
    windowMs: 1_500,
    ...changes,
  }
}

function fired(schedule: string, slot: number, lateMs = 50): FiredSlot {
  return { schedule, slot, firedAtMs: slot + lateMs }
}

function without(schedule: string, ...slots: readonly number[]): readonly FiredSlot[] {
  return evidence().jobs.filter((job) => job.schedule !== schedule || !slots.includes(job.slot))
}

/** Slot 13,000 of a is replaced. */
function withLate(lateMs: number): readonly FiredSlot[] {
  return [...without('a', 13_000), fired('a', 13_000, lateMs)]
}

describe('the judge of slots', () => {
  test('has nothing against slots that came once each', () => {
    const lateness = { slots: 12, p50Ms: 50, p99Ms: 50, maxMs: 50 }
    expect(judgeSlots(evidence())).toEqual({
      lost: [],
      doubled: [],
      wrong: [],
      quiet: lateness,
      overall: lateness,
    })
  })

  test.for([
    ['in the middle', [12_000]],
    ['at the start', [10_000]],
    ['from some time on', [14_000, 15_000]],
    ['altogether', SLOTS],
  ] as const)('notices slots that are missing %s', ([, slots]) => {
    const jobs = without('b', ...slots)
    expect(judgeSlots(evidence({ jobs, told: jobs }))).toMatchObject({
      lost: slots.map((slot) => `slot ${slot} of b has no job`),
      doubled: [],
    })
  })

  test('notices a gap before the time in which all must be there', () => {
    const jobs = [...evidence().jobs, fired('a', 8_000)]
    expect(judgeSlots(evidence({ jobs })).lost).toEqual(['slot 9000 of a has no job'])
  })

  test('notices a slot that was answered as fired and left no job', () => {
    const told = [...evidence().told, fired('a', 17_000)]
    expect(judgeSlots(evidence({ told })).lost).toEqual(['slot 17000 of a was fired, and has no job'])
  })

  test('notices a slot that has two jobs', () => {
    const jobs = [...evidence().jobs, fired('a', 13_000, 900)]
    expect(judgeSlots(evidence({ jobs }))).toMatchObject({
      lost: [],
      doubled: ['slot 13000 of a has 2 jobs'],
    })
  })

  test('notices a slot that was fired twice as one and the same job', () => {
    const told = [...evidence().told, fired('b', 12_000)]
    expect(judgeSlots(evidence({ told })).doubled).toEqual(['slot 12000 of b was answered as fired 2 times'])
  })

  test('does not expect reports from dead processes', () => {
    expect(judgeSlots(evidence({ told: [] }))).toMatchObject({ lost: [], doubled: [] })
  })

  test.for([
    ['too early', fired('a', 16_000, -1)],
    ['off the cadence', fired('a', 15_500)],
    ['of no schedule', fired('c', 15_000)],
  ] as const)('notices one that is %s', ([, job]) => {
    expect(judgeSlots(evidence({ jobs: [...evidence().jobs, job] })).wrong.length).toBe(1)
  })

  test('notices a late slot, and does not blame a fault for one that was due after its window', () => {
    const late = { quiet: { maxMs: 2_500, p99Ms: 2_500 }, overall: { maxMs: 2_500 } }
    expect(judgeSlots(evidence({ jobs: withLate(2_500) }))).toMatchObject(late)
    expect(judgeSlots(evidence({ jobs: withLate(2_500), faultsAtMs: [11_400] }))).toMatchObject(late)
    // Nor for one that was due long before.
    expect(judgeSlots(evidence({ jobs: withLate(2_500), faultsAtMs: [14_000] }))).toMatchObject(late)
  })

  test.for([13_900, 13_000, 12_500])('ignores ticks close to a fault at %i', (atMs) => {
    const { quiet, overall } = judgeSlots(evidence({ jobs: withLate(2_500), faultsAtMs: [atMs] }))
    expect(quiet.maxMs).toBe(50)
    expect(overall).toMatchObject({ slots: 12, maxMs: 2_500 })
  })
})
