/** A machine that sleeps, or whose clock is set forward, loses nobody: leases run on the wall clock, workers do not. */
import { beforeEach, describe, expect, test } from 'vitest'
import { LEASE_MS, StepWorld } from '../../../../test/support/sqlite-steps.ts'

const NIGHT_MS = 8 * 3_600_000
const NOTHING = { workers: [], jobs: [] }

let world: StepWorld
beforeEach(() => {
  world = new StepWorld()
})

describe('after a jump of the clock', () => {
  test('no lease is over for one lease, in which its worker can renew it', () => {
    const worker = world.busyWorker(null)
    const ask = world.as('leader')
    world.nowMs += NIGHT_MS
    expect(ask('rescue', 100)).toEqual(NOTHING)
    world.pass(LEASE_MS - 1)
    expect(ask('rescue', 100)).toEqual(NOTHING)
    expect(ask('heartbeat', { worker, undelivered: [] })).toMatchObject({ alive: true })
    world.pass(2)
    expect(ask('rescue', 100)).toEqual(NOTHING)
  })

  test('a worker that does not come back is lost one lease later', () => {
    const worker = world.busyWorker(null)
    const ask = world.as('leader')
    world.nowMs += NIGHT_MS
    expect(ask('rescue', 100)).toEqual(NOTHING)
    world.pass(LEASE_MS)
    expect(ask('rescue', 100)).toMatchObject({ workers: [worker], jobs: [{ worker }, { worker }] })
  })

  test('a worker whose process is provably gone is lost at once', () => {
    const worker = world.busyWorker('one')
    const ask = world.as('leader')
    world.gone.add('one')
    world.nowMs += NIGHT_MS
    expect(ask('rescue', 100)).toMatchObject({ workers: [worker] })
  })
})

describe('what is no jump', () => {
  test.each([
    ['time that passes', LEASE_MS + 1, LEASE_MS + 1],
    ['a clock that is corrected a little', LEASE_MS + 900, LEASE_MS + 1],
  ])('%s', (_, wallMs, monotonicMs) => {
    const worker = world.busyWorker(null)
    const ask = world.as('leader')
    world.nowMs += wallMs
    world.monotonicMs += monotonicMs
    expect(ask('rescue', 100)).toMatchObject({ workers: [worker] })
  })
})
