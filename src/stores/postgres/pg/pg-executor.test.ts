import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../../test/support/servers/database.ts'
import { systemClock } from '../../../std/clock.ts'
import type { Executor, Queryable, Statement } from '../executor.ts'
import { loadPg } from './driver.ts'
import type { PgExecutorOptions } from './options.ts'
import { pgExecutor } from './pg-executor.ts'
import type { PgParts } from './pg-executor.ts'
import { checkServer } from './server.ts'

let database: Database
const opened: Executor[] = []

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map((executor) => executor.close()))
})

afterAll(() => database.drop())

type Options = Omit<PgExecutorOptions, 'pool' | 'connectionString'> & { readonly connectionString?: string }

function connect(options: Options = {}, parts: Partial<PgParts> = {}): Executor {
  const executor = pgExecutor({ connectionString: database.url, ...options }, parts)
  opened.push(executor)
  return executor
}

const sql = (name: string, text: string): Statement => ({ name, text })
const pidOf = sql('pid', 'select pg_backend_pid() as pid')
const pid = async (on: Queryable): Promise<number> => {
  const [row] = await on.query<{ pid: number }>(pidOf, [])
  return row!.pid
}

describe('an executor on PostgreSQL', () => {
  test.each([18, 13] as const)('tells the version of a server, %i', async (version) => {
    const executor = connect({ connectionString: sharedPostgres(version) })
    const facts = await executor.open()
    expect(Math.floor(facts.version / 10_000)).toBe(version)
    expect(await executor.open()).toEqual(facts)
  })

  test('gives numbers, booleans, parsed JSON and lists, and text for everything else', async () => {
    const statement = sql(
      'types',
      `select $1::bigint as big, $2::int as int, $3::float8 as float, $4::numeric as numeric, $5::boolean as bool,
              $6::text as text, $7::text as nothing, $8::jsonb as jsonb, $8::json as json,
              '2030-01-01 00:00:00+00'::timestamptz at time zone 'UTC' as time, B'101' as bits,
              array[1, 2]::bigint[] as bigs, array['a"b', null, 'NULL', '{,}'] as texts, count(*) as counted,
              extract(epoch from '2030-01-01 00:00:00.25+00'::timestamptz) * 1000 as ms`,
    )
    const values = [2 ** 53 - 1, -7, 0.1, '12.5', true, 'é"\\😀', null, '{"a":[1,{"b":null}]}']
    expect(await connect().query(statement, values)).toEqual([
      {
        big: 2 ** 53 - 1,
        int: -7,
        float: 0.1,
        numeric: 12.5,
        bool: true,
        text: 'é"\\😀',
        nothing: null,
        jsonb: { a: [1, { b: null }] },
        json: { a: [1, { b: null }] },
        time: '2030-01-01 00:00:00',
        bits: '101',
        bigs: [1, 2],
        texts: ['a"b', null, 'NULL', '{,}'],
        counted: 1,
        ms: Date.UTC(2030, 0, 1) + 250,
      },
    ])
  })

  test('neither sees what others set in pg.types nor sets anything there', async () => {
    const theirs = pg.types.getTypeParser(pg.types.builtins.INT8)
    pg.types.setTypeParser(pg.types.builtins.INT8, () => 'theirs')
    try {
      expect(await connect().query(sql('big', 'select 1::bigint as n'), [])).toEqual([{ n: 1 }])
    } finally {
      pg.types.setTypeParser(pg.types.builtins.INT8, theirs)
    }
  })

  test('says who it is', async () => {
    const who = sql('who', `select current_setting('application_name') as name`)
    expect(await connect().query(who, [])).toEqual([{ name: 'holdfast' }])
    expect(await connect({ applicationName: 'shop' }).query(who, [])).toEqual([{ name: 'shop' }])
  })

  test('runs scripts of several statements, and what cannot run in a transaction', async () => {
    const executor = connect({ connections: 1 })
    await executor.script('create table scripted (n int); insert into scripted values (1), (2);')
    await executor.script('vacuum scripted')
    expect(await executor.query(sql('sum', 'select sum(n) as n from scripted'), [])).toEqual([{ n: 3 }])
  })

  test('leaves no transaction behind where a script begins one', async () => {
    const executor = connect({ connections: 1 })
    const transactionId = sql('txid', 'select txid_current() as id')
    // Two statements outside of a transaction are two transactions.
    const isInside = async (): Promise<boolean> => {
      const first = await executor.query<{ id: number }>(transactionId, [])
      const second = await executor.query<{ id: number }>(transactionId, [])
      return first[0]!.id === second[0]!.id
    }
    await expect(executor.script('begin; select 1/0; commit')).rejects.toMatchObject({
      code: 'HF_STORE_REFUSED',
      cause: { code: '22012' },
    })
    expect(await isInside()).toBe(false)
    await executor.script('begin; select 1')
    expect(await isInside()).toBe(false)
  })

  test('replaces connections that are old', async () => {
    let aheadMs = 0
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
    const executor = connect({ connections: 1 }, { clock })
    const first = await pid(executor)
    aheadMs = 20 * 60_000
    expect(await pid(executor)).toBe(first)
    aheadMs = 31 * 60_000
    expect(await pid(executor)).not.toBe(first)
  })

  test('is closed once, and then refuses everything', async () => {
    const executor = connect()
    await executor.open()
    await Promise.all([executor.close(), executor.close()])
    const closed = { code: 'HF_CLOSED' }
    await expect(executor.open()).rejects.toMatchObject(closed)
    await expect(executor.query(pidOf, [])).rejects.toMatchObject(closed)
    await expect(executor.transaction(pid)).rejects.toMatchObject(closed)
    await expect(executor.script('select 1')).rejects.toMatchObject(closed)
    await expect(
      executor.listen(
        'x',
        () => undefined,
        () => undefined,
      ),
    ).rejects.toMatchObject(closed)
  })
})

describe('what an executor cannot use', () => {
  test('is a database that is read-only, for now', async () => {
    const readOnly = await freshDatabase(sharedPostgres(18))
    try {
      const admin = connect({ connectionString: readOnly.url })
      const name = new URL(readOnly.url).pathname.slice(1)
      await admin.script(`alter database ${name} set default_transaction_read_only = on`)
      await expect(connect({ connectionString: readOnly.url }).open()).rejects.toMatchObject({
        code: 'HF_STORE_UNREACHABLE',
        message: expect.stringContaining('read-only'),
      })
    } finally {
      await Promise.all(opened.splice(0).map((executor) => executor.close()))
      await readOnly.drop()
    }
  })

  test('is a standby, for now, and a server that is too old, for good', () => {
    const state = {
      version: 170_002,
      encoding: 'UTF8',
      recovering: false,
      readOnly: false,
      isolation: 'read committed',
    }
    expect(checkServer(state)).toEqual({ version: 170_002 })
    expect(() => checkServer({ ...state, recovering: true })).toThrowError(
      expect.objectContaining({ code: 'HF_STORE_UNREACHABLE', message: expect.stringContaining('standby') }),
    )
    expect(() => checkServer({ ...state, version: 120_015 })).toThrowError(
      expect.objectContaining({ code: 'HF_BAD_STORE', message: expect.stringContaining('PostgreSQL 12;') }),
    )
  })

  test('is not one that isolates transactions otherwise: each statement takes one of its own', async () => {
    const strict = await freshDatabase(sharedPostgres(18))
    try {
      const name = new URL(strict.url).pathname.slice(1)
      await connect({ connectionString: strict.url }).script(
        `alter database ${name} set default_transaction_isolation = 'repeatable read'`,
      )
      const notices: string[] = []
      const executor = connect({ connectionString: strict.url, onNotice: (line) => notices.push(line) })
      await executor.open()
      await executor.open()
      const level = sql('level', `select current_setting('transaction_isolation') as level`)
      expect(await executor.query(level, [])).toEqual([{ level: 'read committed' }])
      expect(await executor.transaction((tx) => tx.query(level, []))).toEqual([{ level: 'read committed' }])
      expect(notices).toEqual([expect.stringContaining('"repeatable read" by default')])
    } finally {
      await Promise.all(opened.splice(0).map((executor) => executor.close()))
      await strict.drop()
    }
  })

  test('is a connection string that cannot be read, whose password is not told', async () => {
    const executor = connect({ connectionString: 'postgres://me:secret@host:port/db' })
    const error = await executor.open().catch((thrown: unknown) => thrown as Error)
    expect(error).toMatchObject({ code: 'HF_BAD_OPTION' })
    expect(String((error as Error).message)).not.toContain('secret')
  })

  test.each([
    [{ connectionString: '' }, /connectionString/],
    [{ connections: 0 }, /connections/],
    [{ commitConnections: 0 }, /commitConnections/],
    [{ queryTimeoutMs: Number.NaN }, /queryTimeoutMs/],
  ])('is an option such as %j', (options, message) => {
    expect(() => connect(options)).toThrowError(
      expect.objectContaining({ code: 'HF_BAD_OPTION', message: expect.stringMatching(message) }),
    )
  })

  test('is a missing package, and the error says what to install', async () => {
    vi.doMock('pg', () => {
      throw new Error('Cannot find package')
    })
    try {
      await expect(connect({}, { load: loadPg }).open()).rejects.toMatchObject({
        code: 'HF_BAD_STORE',
        hint: 'Install it: npm install pg.',
      })
    } finally {
      vi.doUnmock('pg')
    }
  })
})

describe('a pool that is full', () => {
  test('refuses at the deadline, and serves again when a connection is free', async () => {
    const executor = connect({ connections: 1, queryTimeoutMs: 300 })
    let finish = (): void => undefined
    const finished = new Promise<void>((resolve) => (finish = resolve))
    const busy = executor.transaction(async (tx) => {
      const own = await pid(tx)
      await finished
      return own
    })
    await expect(pid(executor)).rejects.toMatchObject({
      code: 'HF_STORE_UNREACHABLE',
      message: 'No database connection came free within 300ms: all 1 are in use.',
    })
    const next = pid(executor)
    finish()
    expect(await next).toBe(await busy)
  })

  test('serves those who wait in their order', async () => {
    const executor = connect({ connections: 1 })
    const order: number[] = []
    const askers = Array.from({ length: 20 }, (_, index) => pid(executor).then(() => order.push(index)))
    await Promise.all(askers)
    expect(order).toEqual([...order.keys()])
  })

  test('has no more connections than it may have, and warns of nothing', async () => {
    const warnings: Error[] = []
    const note = (warning: Error): number => warnings.push(warning)
    process.on('warning', note)
    const executor = connect({ connections: 12 })
    const pids = await Promise.all(Array.from({ length: 40 }, () => pid(executor)))
    expect(new Set(pids).size).toBeGreaterThan(1)
    expect(new Set(pids).size).toBeLessThanOrEqual(12)
    // Concurrently in one transaction, where pg would warn about its queue.
    await executor.transaction((tx) => Promise.all(Array.from({ length: 5 }, () => pid(tx))))
    await executor.close()
    process.off('warning', note)
    expect(warnings).toEqual([])
  })
})

describe('prepared statements', () => {
  const prepared = sql('prepared', 'select name from pg_prepared_statements where from_sql = $1::boolean')
  const namesOf = async (executor: Executor): Promise<string[]> =>
    (await executor.query<{ name: string }>(prepared, [false])).map(({ name }) => name)

  test('are kept on the server, by names that tell two texts apart', async () => {
    const executor = connect({ connections: 1 })
    await executor.query(sql('one', 'select 1 as n'), [])
    expect(await executor.query(sql('one', 'select 2 as n'), [])).toEqual([{ n: 2 }])
    expect((await namesOf(executor)).filter((name) => name.startsWith('one_'))).toHaveLength(2)
  })

  test('are not kept with prepare: false', async () => {
    const executor = connect({ connections: 1, prepare: false })
    await executor.query(sql('one', 'select $1::int as n'), [1])
    expect(await namesOf(executor)).toEqual([])
  })

  test('that got lost are done without from then on, with one notice', async () => {
    const notices: string[] = []
    const executor = connect({ connections: 1, onNotice: (line) => notices.push(line) })
    const one = sql('one', 'select $1::int as n')
    await executor.query(one, [1])
    await executor.script('deallocate all')
    expect(await executor.query(one, [2])).toEqual([{ n: 2 }])
    expect(await executor.transaction((tx) => tx.query(one, [3]))).toEqual([{ n: 3 }])
    expect(await namesOf(executor)).toEqual([])
    expect(notices).toEqual([expect.stringMatching(/^Prepared statements do not survive/)])
  })

  test('that got lost in a transaction begin it anew', async () => {
    const executor = connect({ connections: 1 })
    const one = sql('one', 'select $1::int as n')
    await executor.query(one, [1])
    await executor.script('deallocate all')
    let tries = 0
    const rows = await executor.transaction((tx) => {
      tries++
      return tx.query(one, [2])
    })
    expect(rows).toEqual([{ n: 2 }])
    expect(tries).toBe(2)
  })

  test('whose name is taken are done without', async () => {
    const one = sql('one', 'select $1::int as n')
    const other = connect({ connections: 1 })
    await other.query(one, [1])
    const name = (await namesOf(other)).find((each) => each.startsWith('one_'))
    const executor = connect({ connections: 1 })
    await executor.script(`prepare "${name}" as select 'theirs' as n`)
    expect(await executor.query(one, [2])).toEqual([{ n: 2 }])
  })

  test('that got lost are an error with prepare: true', async () => {
    const executor = connect({ connections: 1, prepare: true })
    const one = sql('one', 'select $1::int as n')
    await executor.query(one, [1])
    await executor.script('deallocate all')
    await expect(executor.query(one, [2])).rejects.toMatchObject({ code: '26000' })
  })

  test('survive a migration that changes what they return', async () => {
    const executor = connect({ connections: 1 })
    const all = sql('all', 'select * from grown')
    await executor.script('create table grown (a int); insert into grown values (1)')
    expect(await executor.query(all, [])).toEqual([{ a: 1 }])
    await executor.script('alter table grown add column b int default 2')
    expect(await executor.query(all, [])).toEqual([{ a: 1, b: 2 }])
    await executor.script('alter table grown add column c int default 3')
    expect(await executor.transaction((tx) => tx.query(all, []))).toEqual([{ a: 1, b: 2, c: 3 }])
  })
})
