import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../../test/support/servers/database.ts'
import { Signal } from '../../../../test/support/signal.ts'
import { eventually } from '../../../../test/support/until.ts'
import { deferred } from '../../../../test/support/virtual.ts'
import { systemClock, type Clock } from '../../../std/clock.ts'
import type { Executor, Statement } from '../executor.ts'
import type { PgExecutorOptions } from './options.ts'
import { pgExecutor } from './pg-executor.ts'

/** A tenth of the timeouts of the real clock. */
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
  test('soon gives its place to others, finishes, and is closed', async () => {
    const executor = connect({ connections: 1, queryTimeoutMs: 300_000 })
    let slow: Promise<unknown> = Promise.resolve()
    await whileLocked(async () => {
      slow = executor.query(locked, [])
      await eventually(async () => expect(await countOf(waiting)).toBe(1))
      expect(await executor.query(one, [])).toEqual([{ n: 1 }])
      expect(await countOf(all)).toBe(2)
    })
    expect(await slow).toEqual([{ n: 1 }])
    await eventually(async () => expect(await countOf(all)).toBe(1))
  })

  test('at most doubles the number of connections', async () => {
    const executor = connect({ connections: 1, queryTimeoutMs: 100_000 })
    const slow: Promise<unknown>[] = []
    await whileLocked(async () => {
      slow.push(executor.query(locked, []).catch((error: unknown) => error))
      slow.push(executor.query(locked, []).catch((error: unknown) => error))
      await eventually(async () => expect(await countOf(waiting)).toBe(2))
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

describe('a statement that may only be sent for a short time', () => {
  test.each([
    ['because it has a short timeout', 100, undefined],
    ['because its caller waits no longer', undefined, 100],
  ])('%s is not started after it has waited too long for a connection', async (_, timeoutMs, withinMs) => {
    const executor = connect({ connections: 1, queryTimeoutMs: 300_000 })
    await executor.script('drop table if exists begun; create table begun (n int)')
    const write = { ...sql('write', 'insert into begun values (1)'), ...(timeoutMs && { timeoutMs }) }
    let slow: Promise<unknown> = Promise.resolve()
    await whileLocked(async () => {
      slow = executor.query(locked, [])
      await eventually(async () => expect(await countOf(waiting)).toBe(1))
      await expect(executor.query(write, [], withinMs)).rejects.toMatchObject({
        code: 'HF_STORE_UNREACHABLE',
      })
      expect(await executor.query(one, [])).toEqual([{ n: 1 }])
      expect(await executor.query(sql('begun', 'select n from begun'), [])).toEqual([])
    })
    expect(await slow).toEqual([{ n: 1 }])
  })
})

describe('transactions of handlers', () => {
  const ofHandler = { ofHandler: true }

  /** Keeps `count` transactions open until `work` ends. */
  async function whileOpen(executor: Executor, count: number, work: () => Promise<void>): Promise<void> {
    let end = (): void => undefined
    const gate = new Promise<void>((resolve) => (end = resolve))
    const news = new Signal()
    let open = 0
    const all = Array.from({ length: count }, () =>
      executor.transaction(async (tx) => {
        await tx.query(one, [])
        open++
        news.notify()
        await gate
      }, ofHandler),
    )
    try {
      await news.until(() => open === count)
      await work()
    } finally {
      end()
      await Promise.all(all)
    }
  }

  test('use separate connections, which are closed when nobody needs them', async () => {
    const executor = connect({ connections: 1, commitConnections: 3 })
    await whileOpen(executor, 3, async () => {
      expect(await countOf(all)).toBe(3)
      expect(await executor.query(one, [])).toEqual([{ n: 1 }])
      expect(await countOf(all)).toBe(4)
    })
    await eventually(async () => expect(await countOf(all)).toBe(1))
    await whileOpen(executor, 1, async () => expect(await countOf(all)).toBe(2))
  })

  test('wait beyond that limit and fail at the deadline, while statements go on', async () => {
    const executor = connect({ connections: 1, commitConnections: 2, queryTimeoutMs: 3_000 })
    let waited: Promise<unknown> = Promise.resolve()
    await whileOpen(executor, 2, async () => {
      // Even if the others are slow, they do not give up their places.
      await expect(executor.transaction(() => Promise.resolve(), ofHandler)).rejects.toMatchObject({
        code: 'HF_STORE_UNREACHABLE',
        message: 'No connection for commit() came free within 3s: all 2 are in use.',
        hint: expect.stringContaining('Raise `commitConnections`') as unknown,
      })
      expect(await executor.query(one, [])).toEqual([{ n: 1 }])
      expect(await countOf(all)).toBe(3)
      waited = executor.transaction((tx) => tx.query(one, []), ofHandler)
    })
    expect(await waited).toEqual([{ n: 1 }])
  })

  test('reuse the connection of the transaction before', async () => {
    const executor = connect({ connections: 1 })
    const pid = sql('pid', 'select pg_backend_pid() as n')
    const pids = new Set<number>()
    for (let times = 0; times < 5; times++) {
      const [row] = await executor.transaction((tx) => tx.query<{ n: number }>(pid, []), ofHandler)
      pids.add(row!.n)
    }
    expect(pids.size).toBe(1)
  })

  test('are aborted by a close', async () => {
    const executor = connect({ connections: 1 })
    const open = deferred()
    const running = executor
      .transaction(async (tx) => {
        await tx.query(one, [])
        open.resolve()
        await new Promise(() => undefined)
      }, ofHandler)
      .catch((error: unknown) => error)
    void running
    await open.promise
    await executor.close()
    await eventually(async () => expect(await countOf(all)).toBe(0))
    await expect(executor.transaction(() => Promise.resolve(), ofHandler)).rejects.toMatchObject({
      code: 'HF_CLOSED',
    })
  })
})
