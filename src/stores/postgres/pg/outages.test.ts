import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  freshDatabase,
  portOf,
  sharedPostgres,
  type Database,
} from '../../../../test/support/servers/database.ts'
import { startPostgres } from '../../../../test/support/servers/postgres-server.ts'
import { startProxy, type TcpProxy } from '../../../../test/support/servers/tcp-proxy.ts'
import { eventually } from '../../../../test/support/until.ts'
import { systemClock, type Clock } from '../../../std/clock.ts'
import { letPromisesRun } from '../../../std/virtual-clock.ts'
import type { Executor, Statement } from '../executor.ts'
import type { PgExecutorOptions } from './options.ts'
import { pgExecutor } from './pg-executor.ts'
import type { PgParts } from './pg-executor.ts'

/** A fifth of the timeouts of the real clock. */
const HASTE = 5
const hasty: Clock = { ...systemClock, after: (ms, fn) => systemClock.after(ms / HASTE, fn) }

let database: Database
let proxy: TcpProxy
/** Bypasses the proxy, to query and to terminate sessions. */
let admin: Executor
const opened: Executor[] = []

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  admin = pgExecutor({ connectionString: database.url, applicationName: 'admin' })
})

afterAll(async () => {
  await admin.close()
  await database.drop()
})

beforeEach(async () => {
  proxy = await startProxy(portOf(database.url))
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map((executor) => executor.close()))
  await proxy.close()
})

type Options = Omit<PgExecutorOptions, 'pool' | 'connectionString'>

function connect(options: Options = {}, parts: Partial<PgParts> = {}): Executor {
  const executor = pgExecutor({ connectionString: proxy.url(database.url), ...options }, parts)
  opened.push(executor)
  return executor
}

const sql = (name: string, text: string): Statement => ({ name, text })
const one = sql('one', 'select 1 as n')
const sleep = sql('sleep', 'select pg_sleep($1::float8)')
const pids = sql('pids', `select pg_backend_pid() as pid`)
const terminate = sql(
  'terminate',
  `select count(pg_terminate_backend(pid)) as n from pg_stat_activity
   where datname = current_database() and application_name = 'holdfast'`,
)
const sleeping = sql(
  'sleeping',
  `select count(*) as n from pg_stat_activity
   where datname = current_database() and application_name = 'holdfast' and state = 'active'`,
)
const sessions = sql(
  'sessions',
  `select count(*) as n from pg_stat_activity where datname = current_database() and application_name = 'holdfast'`,
)
const countOf = async (statement: Statement): Promise<number> =>
  (await admin.query<{ n: number }>(statement, []))[0]!.n

/** How long the work took, and its error. */
async function timed(work: Promise<unknown>): Promise<{ ms: number; error: unknown }> {
  const from = systemClock.monotonicMs()
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return { ms: systemClock.monotonicMs() - from, error }
}

describe('a statement that takes too long', () => {
  test('is abandoned together with its connection, which is replaced', async () => {
    const executor = connect({ connections: 1, queryTimeoutMs: 300 })
    const [before] = await executor.query<{ pid: number }>(pids, [])
    await expect(executor.query(sleep, [60])).rejects.toMatchObject({
      code: 'HF_STORE_UNREACHABLE',
      message: expect.stringContaining('did not answer within 300ms'),
    })
    await proxy.changed.until(() => proxy.connections === 0)
    const [after] = await executor.query<{ pid: number }>(pids, [])
    expect(after!.pid).not.toBe(before!.pid)
  })

  test('is cancelled on the server', async () => {
    // Bypasses the proxy, because a cancel request goes straight to the server.
    const executor = pgExecutor({ connectionString: database.url, queryTimeoutMs: 300 })
    opened.push(executor)
    await expect(executor.query(sleep, [60])).rejects.toThrow('did not answer')
    await eventually(async () => expect(await countOf(sleeping)).toBe(0))
  })
})

describe('a server that terminates all its connections', () => {
  test('does not end the process, and the next statements work', async () => {
    const executor = connect({ connections: 3 })
    const stopped = executor.query(sleep, [60]).catch((error: unknown) => error)
    await Promise.all([executor.query(sleep, [0.05]), executor.query(sleep, [0.05])])
    await eventually(async () => expect(await countOf(sleeping)).toBe(1))
    expect(await countOf(terminate)).toBe(3)
    expect(await stopped).toMatchObject({ code: '57P01' })
    await eventually(async () => expect(await countOf(sessions)).toBe(0))
    const answers = await Promise.all([1, 2, 3].map(() => executor.query(one, [])))
    expect(answers).toEqual([[{ n: 1 }], [{ n: 1 }], [{ n: 1 }]])
  })

  test('fails the transaction under way, and the next one works', async () => {
    const executor = connect({ connections: 1 })
    const failed = executor.transaction(async (tx) => {
      await tx.query(one, [])
      await admin.query(terminate, [])
      return tx.query(one, [])
    })
    await expect(failed).rejects.toThrow(/terminat/)
    expect(await executor.transaction((tx) => tx.query(one, []))).toEqual([{ n: 1 }])
  })
})

describe('a server that stops and starts again', () => {
  test('fails fast while it is down, and answers when it is back', { timeout: 60_000 }, async () => {
    await using server = await startPostgres({ version: 18, settings: { fsync: 'off' } })
    const executor = pgExecutor({ connectionString: server.url() })
    opened.push(executor)
    await executor.open()
    await server.stop('immediate')
    for (let times = 0; times < 4; times++) {
      const { error, ms } = await timed(executor.query(one, []))
      expect(error).toBeInstanceOf(Error)
      expect(ms).toBeLessThan(5_000)
    }
    await server.start()
    expect(await executor.query(one, [])).toEqual([{ n: 1 }])
  })
})

describe('a server that has become read-only', () => {
  test('returns its own error, and the connection is replaced', async () => {
    const executor = connect({ connections: 1 })
    const write = sql('write', 'create table if not exists written (n int)')
    await executor.script('set session characteristics as transaction read only')
    await expect(executor.query(write, [])).rejects.toMatchObject({ code: '25006' })
    await executor.query(write, [])
  })
})

describe('a connection that falls silent', () => {
  test('fails each statement at its deadline, and works again when the network is back', async () => {
    const executor = connect({ connections: 2, queryTimeoutMs: 400 })
    await Promise.all([executor.query(sleep, [0.05]), executor.query(sleep, [0.05])])
    proxy.mode = 'silent'
    const results = await Promise.all([1, 2].map(() => timed(executor.query(one, []))))
    for (const { ms, error } of results) {
      expect(error).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
      expect(ms).toBeGreaterThan(350)
    }
    proxy.mode = 'pass'
    expect(await executor.query(one, [])).toEqual([{ n: 1 }])
  })

  test('is detected before an idle connection is used', async () => {
    let aheadMs = 0
    const clock = { ...hasty, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
    const executor = connect({ connections: 2 }, { clock })
    await Promise.all([executor.query(sleep, [0.05]), executor.query(sleep, [0.05])])
    proxy.mode = 'silent'
    proxy.mode = 'pass'
    // Existing connections never speak again; new ones do.
    aheadMs = 31_000
    const { ms, error } = await timed(executor.query(one, []))
    expect(error).toBeUndefined()
    // The check takes two seconds. Without it, the statement would run into its timeout of 30 s.
    expect(ms).toBeLessThan(15_000 / HASTE)
  })

  test('fails an attempt to connect after five seconds', async () => {
    proxy.mode = 'silent'
    const { ms, error } = await timed(connect({}, { clock: hasty }).open())
    expect(error).toMatchObject({
      code: 'HF_STORE_UNREACHABLE',
      message: 'The database did not accept a connection within 5 s.',
    })
    expect(ms).toBeGreaterThan(4_500 / HASTE)
  })
})

describe('a refused connection', () => {
  test('keeps its error, which the caller treats as an outage', async () => {
    proxy.mode = 'refuse'
    const error = await connect()
      .query(one, [])
      .catch((thrown: unknown) => thrown as Error)
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toHaveProperty('hint')
  })
})

describe('closing', () => {
  /** Far above the bound, for a loaded machine, and far below what an unbounded close would take. */
  const CLOSE_MS = 5_000

  test('waits for statements in flight', async () => {
    const executor = connect()
    const answer = executor.query(sleep, [0.3])
    await eventually(async () => expect(await countOf(sleeping)).toBe(1))
    await executor.close()
    await expect(answer).resolves.toHaveLength(1)
  })

  test('aborts slow statements, and the ones that wait for a connection', async () => {
    const executor = connect({ connections: 2 }, { clock: hasty })
    const errors = [1, 2, 3, 4].map(() => executor.query(sleep, [60]).catch((error: unknown) => error))
    await eventually(async () => expect(await countOf(sleeping)).toBe(2))
    const { ms } = await timed(executor.close())
    expect(ms).toBeLessThan(CLOSE_MS)
    for (const error of await Promise.all(errors)) expect(error).toMatchObject({ code: 'HF_CLOSED' })
    await proxy.changed.until(() => proxy.connections === 0)
  })

  test('is bounded while the server is silent, and leaves no connection', async () => {
    const executor = connect({ connections: 3 }, { clock: hasty })
    await executor.listen(
      'wake',
      () => undefined,
      () => undefined,
    )
    await Promise.all([executor.query(sleep, [0.05]), executor.query(sleep, [0.05])])
    proxy.mode = 'silent'
    const hanging = executor.query(one, []).catch((error: unknown) => error)
    await letPromisesRun()
    const { ms, error } = await timed(executor.close())
    expect(error).toBeUndefined()
    expect(ms).toBeLessThan(CLOSE_MS)
    expect(await hanging).toMatchObject({ code: 'HF_CLOSED' })
  })

  test('is bounded while connecting', async () => {
    proxy.mode = 'silent'
    const executor = connect({}, { clock: hasty })
    const opening = executor.open().catch((error: unknown) => error)
    const listening = executor.listen(
      'wake',
      () => undefined,
      () => undefined,
    )
    await proxy.changed.until(() => proxy.connections >= 2)
    const { ms } = await timed(executor.close())
    expect(ms).toBeLessThan(CLOSE_MS)
    expect(await opening).toBeInstanceOf(Error)
    await listening
  })

  test('lets the process exit, as does an idle executor', async () => {
    const { spawn } = await import('node:child_process')
    const script = `
      const { pgExecutor } = await import(${JSON.stringify(new URL('pg-executor.ts', import.meta.url).href)})
      const executor = pgExecutor({ connectionString: ${JSON.stringify(database.url)} })
      await executor.open()
      await executor.query({ name: 'one', text: 'select 1' }, [])
      console.log('idle')`
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let out = ''
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    const [code] = (await once(child, 'close')) as [number | null]
    expect({ code, out }).toEqual({ code: 0, out: 'idle\n' })
  })
})
