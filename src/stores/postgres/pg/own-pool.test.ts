import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../../test/support/servers/database.ts'
import { systemClock, type Clock } from '../../../std/clock.ts'
import type { Executor, Statement } from '../executor.ts'
import type { PgExecutorOptions } from './options.ts'
import { pgExecutor } from './pg-executor.ts'

/** Far beyond what anything here takes: a loaded machine is no failure. */
const until = (fact: () => unknown): Promise<unknown> => vi.waitFor(fact, { timeout: 10_000, interval: 10 })

/** Ten times as impatient as the real one. */
const hasty: Clock = { ...systemClock, after: (ms, fn) => systemClock.after(ms / 10, fn) }

let database: Database
let admin: Executor
const opened: Executor[] = []

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  admin = pgExecutor({ connectionString: database.url, applicationName: 'admin' })
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map((executor) => executor.close()))
})

afterAll(async () => {
  await admin.close()
  await database.drop()
})

function connect(options: Omit<PgExecutorOptions, 'pool' | 'connectionString'>): Executor {
  const executor = pgExecutor({ connectionString: database.url, ...options }, { clock: hasty })
  opened.push(executor)
  return executor
}

const sql = (name: string, text: string): Statement => ({ name, text })
const one = sql('one', 'select 1 as n')
const locked = sql('locked', `select 1 as n from pg_advisory_xact_lock(1)`)
const activity = (what: string): Statement =>
  sql(
    `activity ${what}`,
    `select count(*) as n from pg_stat_activity
     where datname = current_database() and application_name = 'holdfast' and ${what}`,
  )
const waiting = activity(`wait_event_type = 'Lock'`)
const all = activity('true')
const countOf = async (statement: Statement): Promise<number> =>
  (await admin.query<{ n: number }>(statement, []))[0]!.n

/** Makes `locked` wait for as long as `work` takes. */
async function whileLocked(work: () => Promise<void>): Promise<void> {
  await admin.transaction(async (tx) => {
    await tx.query(sql('lock', 'select pg_advisory_xact_lock(1)'), [])
    await work()
  })
}

describe('a connection that does not answer', () => {
  test('gives its place to others soon, goes on, and is not kept then', async () => {
    const executor = connect({ connections: 1, queryTimeoutMs: 300_000 })
    let slow: Promise<unknown> = Promise.resolve()
    await whileLocked(async () => {
      slow = executor.query(locked, [])
      await until(async () => expect(await countOf(waiting)).toBe(1))
      expect(await executor.query(one, [])).toEqual([{ n: 1 }])
      expect(await countOf(all)).toBe(2)
    })
    expect(await slow).toEqual([{ n: 1 }])
    await until(async () => expect(await countOf(all)).toBe(1))
  })

  test('makes no more connections than as many again', async () => {
    const executor = connect({ connections: 1, queryTimeoutMs: 100_000 })
    const slow: Promise<unknown>[] = []
    await whileLocked(async () => {
      slow.push(executor.query(locked, []).catch((error: unknown) => error))
      slow.push(executor.query(locked, []).catch((error: unknown) => error))
      await until(async () => expect(await countOf(waiting)).toBe(2))
      await expect(executor.query({ ...one, timeoutMs: 10_000 }, [])).rejects.toMatchObject({
        code: 'HF_STORE_UNREACHABLE',
        message: 'No database connection came free within 10s: all 1 are in use.',
      })
      expect(await countOf(all)).toBe(2)
    })
    await Promise.all(slow)
    expect(await executor.query(one, [])).toEqual([{ n: 1 }])
  })
})

describe('a statement that nobody waits for long', () => {
  test('is not begun once it has waited too long for a connection', async () => {
    const executor = connect({ connections: 1, queryTimeoutMs: 300_000 })
    await executor.script('create table begun (n int)')
    const write = { ...sql('write', 'insert into begun values (1)'), timeoutMs: 100 }
    let slow: Promise<unknown> = Promise.resolve()
    await whileLocked(async () => {
      slow = executor.query(locked, [])
      await until(async () => expect(await countOf(waiting)).toBe(1))
      await expect(executor.query(write, [])).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
      expect(await executor.query(one, [])).toEqual([{ n: 1 }])
      expect(await executor.query(sql('begun', 'select n from begun'), [])).toEqual([])
    })
    expect(await slow).toEqual([{ n: 1 }])
  })
})
