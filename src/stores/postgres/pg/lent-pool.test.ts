import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../../test/support/servers/database.ts'
import { Signal } from '../../../../test/support/signal.ts'
import { eventually } from '../../../../test/support/until.ts'
import { deferred } from '../../../../test/support/virtual.ts'
import type { Executor, Statement } from '../executor.ts'
import type { PgExecutorOptions } from './options.ts'
import { pgExecutor } from './pg-executor.ts'

let database: Database
let pool: pg.Pool
let notices: string[]
/** Notified when the pool gives a client, takes one back or loses one. */
let news: Signal
const opened: Executor[] = []

beforeEach(async () => {
  database = await freshDatabase(sharedPostgres(18))
  pool = new pg.Pool({ connectionString: database.url, max: 2, application_name: 'theirs' })
  // A pool ends before the server has closed its sessions, so the database may be dropped under one of its connections. If
  // that connection is idle, the pool emits the error as well.
  pool.on('connect', (client) => client.on('error', ignore))
  pool.on('error', ignore)
  news = new Signal()
  // The pool emits before it has counted.
  for (const event of ['acquire', 'release', 'remove'] as const)
    pool.on(event, () => queueMicrotask(news.notify))
  notices = []
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map((executor) => executor.close()))
  await pool.end()
  await database.drop()
})

function connect(options: Omit<PgExecutorOptions, 'pool'> = {}): Executor {
  const executor = pgExecutor({ pool, onNotice: (line) => notices.push(line), ...options })
  opened.push(executor)
  return executor
}

const sql = (name: string, text: string): Statement => ({ name, text })
const who = sql('who', `select current_setting('application_name') as name, 1::bigint as n`)
const sleep = sql('sleep', 'select pg_sleep($1::float8)')
const divide = sql('divide', 'select 1 / $1::int')
const ignore = (): void => undefined

describe('a lent pool', () => {
  test('runs statements, scripts and transactions', async () => {
    const executor = connect()
    await executor.open()
    expect(await executor.query(who, [])).toEqual([{ name: 'theirs', n: 1 }])
    expect(await executor.transaction((tx) => tx.query(who, []))).toEqual([{ name: 'theirs', n: 1 }])
    await executor.script('create table t (n int)')
    expect(pool.totalCount).toBe(1)
    expect(pool.idleCount).toBe(1)
  })

  test('gets every client back in working order, even after errors', async () => {
    const executor = connect()
    for (let times = 0; times < 5; times++) {
      await expect(executor.query(divide, [0])).rejects.toMatchObject({
        code: 'HF_STORE_REFUSED',
        cause: { code: '22012' },
      })
      await expect(executor.transaction((tx) => tx.query(divide, [0]))).rejects.toThrow()
    }
    expect([pool.totalCount, pool.idleCount]).toEqual([1, 1])
    const { rows } = await pool.query<{ n: string }>('select 1::bigint as n')
    // The owner still gets the types that pg parses by default.
    expect(rows).toEqual([{ n: '1' }])
  })

  test('loses a client whose statement took too long', async () => {
    const executor = connect({ queryTimeoutMs: 200 })
    await expect(executor.query(sleep, [60])).rejects.toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
    expect(pool.totalCount).toBe(0)
    expect(await executor.query(who, [])).toHaveLength(1)
  })

  test('that is exhausted fails at the deadline, and loses no client', async () => {
    const executor = connect({ queryTimeoutMs: 200 })
    const theirs = [await pool.connect(), await pool.connect()]
    await expect(executor.query(who, [])).rejects.toMatchObject({
      code: 'HF_STORE_UNREACHABLE',
      message: 'The lent pool gave no connection within 200ms.',
    })
    for (const client of theirs) client.release()
    await news.until(() => expect([pool.totalCount, pool.idleCount]).toEqual([2, 2]))
    expect(await executor.query(who, [])).toHaveLength(1)
  })

  test('keeps connections for statements, however many commit() transactions are open', async () => {
    const executor = connect({ commitConnections: 1, queryTimeoutMs: 500 })
    const inTransaction = (work: () => Promise<void>): Promise<void> =>
      executor.transaction(work, { ofHandler: true })
    await inTransaction(async () => {
      await expect(inTransaction(() => Promise.resolve())).rejects.toMatchObject({
        message: 'No connection for commit() came free within 500ms: the only one is in use.',
      })
      expect(await executor.query(who, [])).toHaveLength(1)
    })
    await inTransaction(() => Promise.resolve())
    expect([pool.totalCount, pool.idleCount]).toEqual([2, 2])
  })

  test('survives the termination of its connections', async () => {
    const executor = connect()
    const admin = pgExecutor({ connectionString: database.url })
    opened.push(admin)
    await executor.query(who, [])
    const running = executor.query(sleep, [60]).catch((error: unknown) => error)
    const kill = sql(
      'kill',
      `select count(pg_terminate_backend(pid)) as n from pg_stat_activity
       where application_name = 'theirs' and datname = current_database() and query like '%pg_sleep%'`,
    )
    await eventually(async () => expect(await admin.query(kill, [])).toEqual([{ n: 1 }]))
    expect(await running).toMatchObject({ code: '57P01' })
    expect(await executor.query(who, [])).toHaveLength(1)
    // Now an idle one: only the executor and this test listen for errors of the pool.
    const killIdle = sql(
      'kill_idle',
      `select count(pg_terminate_backend(pid)) as n from pg_stat_activity
       where application_name = 'theirs' and datname = current_database()`,
    )
    await admin.query(killIdle, [])
    await news.until(() => expect(pool.totalCount).toBe(0))
    expect(await executor.query(who, [])).toHaveLength(1)
  })

  test('is not ended by a close, which removes the listeners that were added', async () => {
    const before = pool.listenerCount('error')
    const executor = connect()
    const running = executor.query(sleep, [60]).catch((error: unknown) => error)
    await news.until(() => expect(pool.totalCount - pool.idleCount).toBe(1))
    await executor.close()
    expect(await running).toMatchObject({ code: 'HF_CLOSED' })
    await expect(executor.query(who, [])).rejects.toMatchObject({ code: 'HF_CLOSED' })
    expect(pool.ended).toBe(false)
    expect(pool.listenerCount('error')).toBe(before)
    expect((await pool.query('select 1 as n')).rows).toEqual([{ n: 1 }])
  })

  test('cannot listen on its own, and emits one notice', async () => {
    const executor = connect()
    const [one, two] = [
      await executor.listen('a', ignore, ignore),
      await executor.listen('b', ignore, ignore),
    ]
    expect([one.listening, two.listening]).toEqual([false, false])
    expect(notices).toEqual([
      expect.stringMatching(/cannot LISTEN, so workers find new jobs by polling only/),
    ])
    await one.stop()
  })

  test('with a connection string listens on a separate connection', async () => {
    const executor = connect({ connectionString: database.url })
    const heard = deferred<string>()
    const listening = await executor.listen('a', (payload) => heard.resolve(payload), ignore)
    expect(listening.listening).toBe(true)
    await pool.query(`select pg_notify('a', 'hello')`)
    expect(await heard.promise).toBe('hello')
    expect(notices).toEqual([])
  })

  test('emits one notice if notifications do not arrive', async () => {
    // Another database on the same server: as behind a pooler, LISTEN succeeds and nothing arrives.
    const executor = connect({ connectionString: sharedPostgres(18) })
    const gap = vi.fn()
    const [one, two] = await Promise.all([
      executor.listen('a', ignore, gap),
      executor.listen('b', ignore, gap),
    ])
    expect([one.listening, two.listening]).toEqual([false, false])
    expect(notices).toEqual([expect.stringMatching(/no notice arrives/)])
    expect(gap).not.toHaveBeenCalled()
  })
})
