/** What a page reads: not the bodies of all jobs that may be on it. */
import { beforeEach, describe, expect, test } from 'vitest'
import { StepWorld, type Ask } from '../../../../test/support/sqlite-steps.ts'
import { newFlushId, newJobs } from '../../conformance/support.ts'
import type { Database } from '../driver.ts'

let world: StepWorld
let charsRead: number

/** Counts the characters of all rows that statements return. */
function counting(database: Database): Database {
  const counted = <T>(rows: T): T => {
    charsRead += JSON.stringify(rows)?.length ?? 0
    return rows
  }
  return {
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    prepare(sql) {
      const statement = database.prepare(sql)
      return {
        all: (...values) => counted(statement.all(...values)),
        get: (...values) => counted(statement.get(...values)),
        run: (...values) => statement.run(...values),
      }
    },
  }
}

function filled(count: number, bytes: number): Ask {
  const ask = world.as(null, counting(world.database))
  const payload = JSON.stringify('x'.repeat(bytes))
  ask('enqueue', { id: newFlushId(), jobs: newJobs(count, { payload }) })
  charsRead = 0
  return ask
}

beforeEach(() => {
  world = new StepWorld()
})

describe('a page of a list', () => {
  test.each([{ states: ['ready'] as const }, {}])('reads the bodies that are on it: %j', (filter) => {
    const ask = filled(400, 20_000)
    expect(ask('list', { ...filter, limit: 5, after: null }).jobs).toHaveLength(5)
    // Not eight million.
    expect(charsRead).toBeLessThan(1_200_000)
  })

  test('reads the bodies that it changes, under the write lock', () => {
    const ask = filled(400, 20_000)
    const { outcomes } = ask('change', { states: ['ready'] }, { type: 'cancel', reason: null }, 5, null)
    expect(outcomes).toEqual({ cancelled: 5 })
    expect(charsRead).toBeLessThan(300_000)
  })

  test('ends early if its jobs are large, and the next one goes on', () => {
    const ask = filled(60, 250_000)
    const first = ask('list', { states: ['ready'], limit: 100, after: null })
    expect(first.jobs.length).toBeLessThan(50)
    const second = ask('list', { states: ['ready'], limit: 100, after: first.next })
    expect(first.jobs.length + second.jobs.length).toBe(60)
    expect(second.next).toBeNull()
  })

  test('looks at no more jobs than it may, also in a state that has few', () => {
    const ask = filled(20, 10)
    const { jobs, looked, next } = ask('list', { states: ['ready'], limit: 100, after: null }, 7)
    expect({ jobs: jobs.length, looked }).toEqual({ jobs: 7, looked: 7 })
    expect(next).not.toBeNull()
  })
})
