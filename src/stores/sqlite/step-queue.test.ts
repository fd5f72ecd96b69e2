import { describe, expect, test } from 'vitest'
import { sleep, systemClock, type Clock } from '../../std/clock.ts'
import { groupsOf, type Call, type Outcome, type Ran } from './engine/runner.ts'
import { StepQueue, type StepRunner } from './step-queue.ts'

const BUSY = Object.assign(new Error('database is locked'), { errcode: 5 })

/** Time passes only where the test says so, and while somebody waits. */
class StepClock implements Clock {
  #nowMs = 0
  now(): number {
    return this.#nowMs
  }
  monotonicMs(): number {
    return this.#nowMs
  }
  pass(ms: number): void {
    this.#nowMs += ms
  }
  after(ms: number, fn: () => void): () => void {
    return systemClock.after(0, () => {
      this.pass(ms)
      fn()
    })
  }
}

/** Answers each call with what `outcome` says of the transaction that it is in. */
function runnerOf(outcome: (call: Call) => Outcome): StepRunner {
  return {
    run<C extends Call>(calls: readonly C[]): Ran<C> {
      return { outcomes: calls.map((call) => [call, outcome(call)] as const), hints: [] }
    },
  }
}

describe('a step', () => {
  test('that waited behind a slow disk has all its time for the lock', async () => {
    const clock = new StepClock()
    let tries = 0
    const runner = runnerOf(({ name }) => {
      if (name === 'queues') {
        clock.pass(5_000)
        return { value: 'slow' }
      }
      return ++tries < 3 ? { error: BUSY, cause: BUSY } : { value: 'written' }
    })
    const queue = new StepQueue(runner, () => undefined, clock)
    const slow = queue.call('queues')
    await sleep(systemClock, 0)
    const written = queue.call('setPaused', 'default', true)
    expect(await slow).toBe('slow')
    expect(await written).toBe('written')
  })

  test('gives up on a lock that stays with somebody else', async () => {
    const clock = new StepClock()
    const queue = new StepQueue(
      runnerOf(() => ({ error: BUSY, cause: BUSY })),
      () => undefined,
      clock,
    )
    await expect(queue.call('setPaused', 'default', true)).rejects.toBe(BUSY)
    expect(clock.now()).toBeGreaterThanOrEqual(2_000)
    expect(clock.now()).toBeLessThan(3_000)
  })
})

describe('steps share a transaction', () => {
  const filter = { states: ['dead'] }
  test.each<[string, Call]>([
    ['replays', { name: 'change', args: [filter, { type: 'replay' }, 1_000, null] }],
    ['promotions', { name: 'promote', args: [1_000] }],
    ['prunes', { name: 'prune', args: [{}, 1_000] }],
    ['rescues', { name: 'rescue', args: [1_000] }],
  ])('unless they touch many jobs: %s', (_name, call) => {
    expect(groupsOf([call, call, call]).map((group) => group.length)).toEqual([1, 1, 1])
  })

  test('up to a thousand jobs', () => {
    const call: Call = { name: 'enqueue', args: [{ jobs: Array.from({ length: 499 }) }] }
    expect(groupsOf([call, call, call]).map((group) => group.length)).toEqual([2, 1])
  })
})
