import { beforeEach, describe, expect, test } from 'vitest'
import { LEASE_MS, StepWorld } from '../../../../test/support/sqlite-steps.ts'
import { newWorkerId } from '../../conformance/support.ts'

const TTL_MS = 10_000

let world: StepWorld
beforeEach(() => {
  world = new StepWorld()
})

describe('a process that is gone', () => {
  test('leads no longer, although its term is not over', () => {
    expect(world.as('one')('lead', newWorkerId(), TTL_MS)).toBe(true)
    expect(world.as('two')('lead', newWorkerId(), TTL_MS)).toBe(false)
    world.gone.add('one')
    expect(world.as('two')('lead', newWorkerId(), TTL_MS)).toBe(true)
  })

  test('has its jobs taken by the next leader, who tells of them with the next rescue, once', () => {
    const worker = world.busyWorker('one')
    world.gone.add('one')
    const ask = world.as('two')
    ask('lead', newWorkerId(), TTL_MS)
    const [queue] = ask('queues')
    expect(queue?.counts).toMatchObject({ ready: 1, scheduled: 1, running: 0 })
    const { workers, jobs } = ask('rescue', 100)
    expect(workers).toEqual([worker])
    expect(jobs.map(({ crashes }) => crashes).toSorted((a, b) => a - b)).toEqual([0, 1])
    expect(ask('rescue', 100)).toEqual({ workers: [], jobs: [] })
  })

  test('has its jobs told of again if the rescue that told of them was rolled back', () => {
    const worker = world.busyWorker('one')
    world.gone.add('one')
    let [fails, isWriting] = [false, false]
    const exec = (sql: string): void => {
      if (fails && isWriting && sql === 'commit') throw new Error('disk I/O error')
      isWriting = sql === 'begin immediate'
      world.database.exec(sql)
    }
    const ask = world.as('two', {
      exec,
      prepare: (sql) => world.database.prepare(sql),
      close: () => undefined,
    })
    ask('lead', newWorkerId(), TTL_MS)
    fails = true
    expect(() => ask('rescue', 100)).toThrow()
    fails = false
    expect(ask('rescue', 100)).toMatchObject({ workers: [worker], jobs: [{ worker }, { worker }] })
    expect(ask('rescue', 100)).toEqual({ workers: [], jobs: [] })
  })
})

describe.each(['one', null])('a process that may be there (%s)', (process) => {
  test('keeps its jobs when somebody else begins to lead, even if its lease is over', () => {
    world.busyWorker(process)
    world.pass(LEASE_MS + 1)
    const ask = world.as('two')
    ask('lead', newWorkerId(), TTL_MS)
    expect(ask('queues')[0]?.counts).toMatchObject({ running: 2 })
  })
})
