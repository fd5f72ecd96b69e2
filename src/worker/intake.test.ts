import { describe, expect, test } from 'vitest'
import { Intake, type Claim } from './intake.ts'

const NO_BATCHES = { perSlot: 0, gathered: 0 }
const claimed = (inLine: number): { inLine: number; room: () => typeof NO_BATCHES } => ({
  inLine,
  room: () => NO_BATCHES,
})

/** A worker that finishes 10 jobs per millisecond and whose claims take this long. */
function busyIntake(claimMs: number): { intake: Intake; nowMs: number } {
  const intake = new Intake(new Map([['default', 1]]), 1_000, 0)
  let nowMs = 0
  for (let round = 0; round < 20; round++) {
    const claim = intake.next(100, claimed(0), true, nowMs) as Claim
    intake.sent(claim, nowMs)
    nowMs += claimMs
    intake.answered(claim, [], nowMs)
    intake.landed(claim)
    intake.wakeUp('default')
    nowMs += 50
    for (let job = 0; job < 10 * (50 + claimMs); job++) intake.noteFinished()
  }
  // Takes note of the rate.
  intake.next(0, claimed(0), true, nowMs)
  return { intake, nowMs }
}

const claims = ({ intake, nowMs }: ReturnType<typeof busyIntake>, inLine: number): boolean =>
  intake.next(100, claimed(inLine), true, nowMs) !== null

describe('a worker that has jobs in line', () => {
  test('claims again when they last for half of what it may hold', () => {
    const busy = busyIntake(2)
    expect([claims(busy, 300), claims(busy, 200)]).toEqual([false, true])
  })

  test('claims earlier if a claim takes longer than that, as with large payloads', () => {
    const busy = busyIntake(30)
    expect([claims(busy, 600), claims(busy, 400)]).toEqual([false, true])
  })
})
