import { expect, test } from 'vitest'
import { work } from '../../test/support/planning.ts'
import { alone, coreOf } from '../../test/support/virtual.ts'
import { Driver } from './driver.ts'
import { newLoopState } from './plan.ts'
import { Session } from './session.ts'

const broken = new Error('a bug')
const nothing = (): void => undefined

test('a turn that fails is backed off, whatever rings, and gives back what waits to be started', async () => {
  const { hf, world, told } = alone()
  const core = coreOf(hf)
  const session = new Session({
    core,
    leaseMs: 30_000,
    callTimeoutMs: 3_000,
    running: new Set(),
    openTokens: () => new Set(),
    onLost: nothing,
    onCancel: () => false,
  })
  await session.start()
  const turnsMs: number[] = []
  const givenBackMs: number[] = []
  let fails = true
  const driver = new Driver({
    core,
    session,
    state: newLoopState(new Map([['default', 1]]), { pollMs: 1_000, batchSize: 10 }, world.nowMs),
    work: () => work(),
    takeReports: () => [],
    onTurn: () => {
      turnsMs.push(world.nowMs)
      if (fails) throw broken
      return false
    },
    giveBack: (staleMs) => {
      givenBackMs.push(staleMs)
      throw broken
    },
    onSettled: nothing,
    onLease: nothing,
    onLeaseFailed: nothing,
    onAnswer: nothing,
    onCallEnded: nothing,
  })
  const running = driver.run()
  for (let ms = 0; ms < 10_000; ms += 10) {
    driver.ring()
    await world.advance(10)
  }
  // After 50 ms, 100 ms, 200 ms, and so on: not each of the thousand times that it rings.
  expect(turnsMs.length).toBeLessThanOrEqual(15)
  expect(turnsMs.length).toBeGreaterThan(5)
  expect(givenBackMs).toEqual(turnsMs)
  expect(told.of('worker.error').map(({ doing }) => doing)).toEqual(
    turnsMs.flatMap(() => ['plan its next call', 'give back jobs']),
  )
  fails = false
  await world.advance(10_000)
  const turns = turnsMs.length
  driver.ring()
  await world.advance(1)
  expect(turnsMs.length).toBe(turns + 1)
  driver.end()
  await world.run(running)
  await world.run(session.stop())
})
