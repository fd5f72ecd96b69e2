import { describe, expect, test } from 'vitest'
import { judgeTicks, type FiredTick, type TickEvidence } from './support/tick-judge.ts'

const SCHEDULES = ['a', 'b']
const TICKS = [10_000, 11_000, 12_000, 13_000, 14_000, 15_000]

/** Of two schedules, each tick 50 ms late. */
function evidence(changes: Partial<TickEvidence> = {}): TickEvidence {
  const jobs = SCHEDULES.flatMap((schedule) => TICKS.map((tick) => fired(schedule, tick)))
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

function fired(schedule: string, tick: number, lateMs = 50): FiredTick {
  return { schedule, tick, firedAtMs: tick + lateMs }
}

function without(schedule: string, ...ticks: readonly number[]): readonly FiredTick[] {
  return evidence().jobs.filter((job) => job.schedule !== schedule || !ticks.includes(job.tick))
}

/** Tick 13,000 of a is replaced. */
function withLate(lateMs: number): readonly FiredTick[] {
  return [...without('a', 13_000), fired('a', 13_000, lateMs)]
}

describe('the judge of ticks', () => {
  test('has nothing against ticks that came once each', () => {
    const lateness = { ticks: 12, p50Ms: 50, p99Ms: 50, maxMs: 50 }
    expect(judgeTicks(evidence())).toEqual({
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
    ['altogether', TICKS],
  ] as const)('notices ticks that are missing %s', ([, ticks]) => {
    const jobs = without('b', ...ticks)
    expect(judgeTicks(evidence({ jobs, told: jobs }))).toMatchObject({
      lost: ticks.map((tick) => `tick ${tick} of b has no job`),
      doubled: [],
    })
  })

  test('notices a gap before the time in which all must be there', () => {
    const jobs = [...evidence().jobs, fired('a', 8_000)]
    expect(judgeTicks(evidence({ jobs })).lost).toEqual(['tick 9000 of a has no job'])
  })

  test('notices a tick that was answered as fired and left no job', () => {
    const told = [...evidence().told, fired('a', 17_000)]
    expect(judgeTicks(evidence({ told })).lost).toEqual(['tick 17000 of a was fired, and has no job'])
  })

  test('notices a tick that has two jobs', () => {
    const jobs = [...evidence().jobs, fired('a', 13_000, 900)]
    expect(judgeTicks(evidence({ jobs }))).toMatchObject({
      lost: [],
      doubled: ['tick 13000 of a has 2 jobs'],
    })
  })

  test('notices a tick that was fired twice as one and the same job', () => {
    const told = [...evidence().told, fired('b', 12_000)]
    expect(judgeTicks(evidence({ told })).doubled).toEqual(['tick 12000 of b was answered as fired 2 times'])
  })

  test('does not ask the dead what they have fired', () => {
    expect(judgeTicks(evidence({ told: [] }))).toMatchObject({ lost: [], doubled: [] })
  })

  test.for([
    ['too early', fired('a', 16_000, -1)],
    ['off the cadence', fired('a', 15_500)],
    ['of no schedule', fired('c', 15_000)],
  ] as const)('notices one that is %s', ([, job]) => {
    expect(judgeTicks(evidence({ jobs: [...evidence().jobs, job] })).wrong.length).toBe(1)
  })

  test('notices a late tick, and does not blame a fault for one that was due after its window', () => {
    const late = { quiet: { maxMs: 2_500, p99Ms: 2_500 }, overall: { maxMs: 2_500 } }
    expect(judgeTicks(evidence({ jobs: withLate(2_500) }))).toMatchObject(late)
    expect(judgeTicks(evidence({ jobs: withLate(2_500), faultsAtMs: [11_400] }))).toMatchObject(late)
    // Nor for one that was due long before.
    expect(judgeTicks(evidence({ jobs: withLate(2_500), faultsAtMs: [14_000] }))).toMatchObject(late)
  })

  test.for([13_900, 13_000, 12_500])('leaves out what a fault at %i has touched', (atMs) => {
    const { quiet, overall } = judgeTicks(evidence({ jobs: withLate(2_500), faultsAtMs: [atMs] }))
    expect(quiet.maxMs).toBe(50)
    expect(overall).toMatchObject({ ticks: 12, maxMs: 2_500 })
  })
})
