import { beforeEach, describe, expect, test } from 'vitest'
import type { WorkerId } from '../../../job/ids.ts'
import { systemRandom } from '../../../std/random.ts'
import { newFlushId, newJobs, newWorkerId } from '../../conformance/support.ts'
import { loadDriver } from '../driver.ts'
import { Db, readSql } from './db.ts'
import { Engine } from './engine.ts'
import { Runner } from './runner.ts'
import type { StepAnswer, StepArgs, StepName } from './steps.ts'

const { DatabaseSync } = await loadDriver()
const { tables, statements } = readSql()
const LEASE_MS = 30_000
const TTL_MS = 10_000

/** Identities of processes, null if unknown. */
type Process = string | null

let database: InstanceType<typeof DatabaseSync>
let gone: Set<string>
let nowMs: number

/** The store as the process of that identity sees it. */
function as(own: Process): <Name extends StepName>(name: Name, ...args: StepArgs<Name>) => StepAnswer<Name> {
  const engine = new Engine({
    db: new Db(database, statements),
    clock: { now: () => nowMs },
    random: systemRandom,
    processes: { own, isGone: (process) => gone.has(process) },
  })
  const runner = new Runner({ database, engine, lockHolder: () => null })
  return (name, ...args) => {
    const [, outcome] = runner.run([{ name, args }]).outcomes[0] ?? []
    if (outcome === undefined || 'error' in outcome)
      throw new Error('The call failed.', { cause: outcome?.error })
    return outcome.value as StepAnswer<typeof name>
  }
}

/** A worker of that process with two claimed jobs, one of which may be running. */
function busyWorker(process: Process): WorkerId {
  const worker = newWorkerId()
  const ask = as(process)
  const jobs = newJobs(2)
  ask('enqueue', { id: newFlushId(), jobs })
  ask('register', worker, LEASE_MS, 1)
  ask('cycle', { worker, settle: [], claim: { queue: jobs[0]?.queue ?? '', limit: 10, suspects: true } })
  return worker
}

beforeEach(() => {
  database = new DatabaseSync(':memory:')
  database.exec(tables)
  gone = new Set()
  nowMs = Date.UTC(2030, 0, 1)
})

describe('a process that is gone', () => {
  test('leads no longer, although its term is not over', () => {
    expect(as('one')('lead', newWorkerId(), TTL_MS)).toBe(true)
    expect(as('two')('lead', newWorkerId(), TTL_MS)).toBe(false)
    gone.add('one')
    expect(as('two')('lead', newWorkerId(), TTL_MS)).toBe(true)
  })

  test('has its jobs taken by the next leader, who tells of them with the next rescue, once', () => {
    const worker = busyWorker('one')
    gone.add('one')
    const ask = as('two')
    ask('lead', newWorkerId(), TTL_MS)
    const [queue] = ask('queues')
    expect(queue?.counts).toMatchObject({ ready: 1, scheduled: 1, running: 0 })
    const { workers, jobs } = ask('rescue', 100)
    expect(workers).toEqual([worker])
    expect(jobs.map(({ crashes }) => crashes).toSorted((a, b) => a - b)).toEqual([0, 1])
    expect(ask('rescue', 100)).toEqual({ workers: [], jobs: [] })
  })
})

describe.each(['one', null])('a process that may be there (%s)', (process) => {
  test('keeps its jobs when somebody else begins to lead, even if its lease is over', () => {
    busyWorker(process)
    nowMs += LEASE_MS + 1
    const ask = as('two')
    ask('lead', newWorkerId(), TTL_MS)
    expect(ask('queues')[0]?.counts).toMatchObject({ running: 2 })
  })
})
