import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { NewJob } from '../../../job/record.ts'
import { systemRandom } from '../../../std/random.ts'
import { newFlushId, newJob, newWorkerId } from '../../conformance/support.ts'
import { loadDriver, type Database } from '../driver.ts'
import { Db, readSql } from './db.ts'
import { Engine } from './engine.ts'
import { Runner, type Call, type Outcome } from './runner.ts'
import type { StepAnswer } from './steps.ts'

const { DatabaseSync } = await loadDriver()
const { tables, statements } = readSql()
const AUDIT = readFileSync(new URL('../../../../test/support/sqlite-audit.sql', import.meta.url), 'utf8')

let folder: string
let nowMs: number
let database: Database
let other: Database

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-runner-'))
  nowMs = Date.UTC(2030, 0, 1)
  ;[database, other] = [open(), open()]
  database.exec('pragma journal_mode = wal; pragma synchronous = off')
  database.exec(tables)
})

afterEach(() => {
  const wrong = database.prepare(AUDIT).all()
  database.close()
  other.close()
  rmSync(folder, { recursive: true, force: true })
  assert.deepEqual(wrong, [], 'a recount of the store')
})

function open(): Database {
  return new DatabaseSync(join(folder, 'store.db'))
}

function runnerOn(connection: Database): Runner {
  const engine = new Engine({
    db: new Db(connection, statements),
    clock: { now: () => nowMs, monotonicMs: () => nowMs },
    random: systemRandom,
    processes: { own: null, isGone: () => false },
  })
  return new Runner({ database: connection, engine, lockHolder: () => null })
}

const flushOf = (...jobs: readonly NewJob[]): Call => ({
  name: 'enqueue',
  args: [{ id: newFlushId(), jobs }],
})

function valueOf(outcome: Outcome | undefined): unknown {
  if (outcome === undefined || 'error' in outcome)
    throw new Error('The step failed.', { cause: outcome?.error })
  return outcome.value
}

/** The value of one step alone. */
function value(runner: Runner, call: Call): unknown {
  const [, outcome] = runner.run([call]).outcomes[0] ?? []
  return valueOf(outcome)
}

describe('steps that share a transaction', () => {
  test('run again, each alone, if one of them throws: only that one fails, and nothing of it is told', () => {
    const taken = newJob({ queue: 'first' })
    const runner = runnerOn(database)
    value(runner, flushOf(taken))
    const calls = [
      flushOf(newJob({ queue: 'before' })),
      // Its first job is counted before its second fails.
      flushOf(newJob({ queue: 'failing' }), { ...taken, queue: 'failing' }),
      flushOf(newJob({ queue: 'behind' })),
    ]
    const { outcomes, hints } = runner.run(calls)
    expect(outcomes.map(([, outcome]) => 'value' in outcome)).toEqual([true, false, true])
    expect(hints).toEqual(['before', 'behind'].map((queue) => ({ type: 'ready', queue })))
    const queues = value(runner, { name: 'queues', args: [] }) as StepAnswer<'queues'>
    expect(queues.map(({ queue, counts }) => [queue, counts.ready])).toEqual([
      ['before', 1],
      ['behind', 1],
      ['first', 1],
    ])
  })

  test('all wait if another process writes', () => {
    other.exec('begin immediate')
    const { outcomes } = runnerOn(database).run([flushOf(newJob()), flushOf(newJob())])
    for (const [, outcome] of outcomes) expect(outcome).toMatchObject({ cause: { message: /locked/ } })
    other.exec('commit')
  })
})

describe('a write', () => {
  test('has the write lock before it reads, so that nobody writes in between', () => {
    let tries = 0
    const between = (): void => {
      if (tries++ === 0)
        expect(() => other.exec(`insert into holdfast_queue (name) values ('between')`)).toThrow('locked')
    }
    const runner = runnerOn({
      exec: (sql) => database.exec(sql),
      close: () => undefined,
      prepare(sql) {
        const statement = database.prepare(sql)
        const run = (...values: Parameters<typeof statement.run>) => (between(), statement.run(...values))
        const [get, all] = [statement.get.bind(statement), statement.all.bind(statement)]
        return { get, all, run }
      },
    })
    value(runner, flushOf(newJob()))
    expect(tries).toBeGreaterThan(0)
  })

  test('is not kept from beginning by a transaction that an error has left open', () => {
    database.exec(`begin immediate; insert into holdfast_note (kind, id, text) values ('left', 'open', '')`)
    const job = newJob()
    const runner = runnerOn(database)
    value(runner, flushOf(job))
    expect(value(runner, { name: 'get', args: [job.id] })).toMatchObject({ id: job.id })
    expect(value(runner, { name: 'listNotes', args: ['left'] })).toEqual([])
  })
})

describe('a step that only looks whether it has something to do', () => {
  test('does not wait for the write lock', () => {
    const worker = newWorkerId()
    const runner = runnerOn(database)
    value(runner, { name: 'register', args: [worker, 30_000, 1] })
    other.exec('begin immediate')
    const claim = { queue: 'default', limit: 1, suspects: true }
    expect(value(runner, { name: 'cycle', args: [{ worker, settle: [], claim }] })).toMatchObject({
      leases: [],
    })
    expect(value(runner, { name: 'promote', args: [10] })).toEqual({ promoted: 0, nextInMs: null })
    other.exec('commit')
  })

  test('promotes what is due, and says when the next is', () => {
    const runner = runnerOn(database)
    value(runner, flushOf(newJob({ due: { inMs: 100 } }), newJob({ due: { inMs: 500 } })))
    expect(value(runner, { name: 'promote', args: [10] })).toEqual({ promoted: 0, nextInMs: 100 })
    nowMs += 100
    expect(value(runner, { name: 'promote', args: [10] })).toEqual({ promoted: 1, nextInMs: 400 })
  })

  test('keeps the reports of a worker that claims nothing', () => {
    const job = newJob()
    const worker = newWorkerId()
    const runner = runnerOn(database)
    value(runner, { name: 'register', args: [worker, 30_000, 1] })
    value(runner, flushOf(job))
    const claim = { queue: job.queue, limit: 1, suspects: true }
    const claimed = value(runner, {
      name: 'cycle',
      args: [{ worker, settle: [], claim }],
    }) as StepAnswer<'cycle'>
    const token = claimed.leases[0]?.token
    const report = {
      token,
      position: 0,
      progress: null,
      log: [{ at: nowMs, level: 'info', message: 'here' }],
    }
    value(runner, { name: 'cycle', args: [{ worker, settle: [], claim: null, reports: [report] }] })
    expect(value(runner, { name: 'get', args: [job.id] })).toMatchObject({ log: [{ message: 'here' }] })
  })
})
