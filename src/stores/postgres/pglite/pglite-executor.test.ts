import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../../std/clock.ts'
import type { Executor, Queryable, Statement } from '../executor.ts'
import { loadPglite } from './database.ts'
import { pgliteExecutor } from './pglite-executor.ts'

/** Far beyond what anything here takes: a loaded machine is no failure. */
const until = (fact: () => unknown): Promise<unknown> => vi.waitFor(fact, { timeout: 10_000, interval: 10 })

/** Starting PGlite compiles 10 MB of WebAssembly and creates a database. */
const START_MS = 120_000

const sql = (name: string, text: string): Statement => ({ name, text })
const add = sql('add', 'update account set n = n + $1::int')
const sums = sql('sums', 'select n from account')
const divide = sql('divide', 'select 1 / $1::int')
const ignore = (): void => undefined

let executor: Executor

const read = async (on: Queryable = executor): Promise<number> =>
  (await on.query<{ n: number }>(sums, []))[0]!.n

beforeAll(async () => {
  executor = pgliteExecutor({ directory: null, transactionTimeoutMs: 1_000 })
  await executor.open()
}, START_MS)

afterAll(() => executor.close())

beforeEach(async () => {
  await executor.script(
    'drop table if exists account; create table account (n int); insert into account values (0)',
  )
})

describe('an executor on PGlite', () => {
  test('tells its version, each time the same', async () => {
    const facts = await executor.open()
    expect(facts.version).toBeGreaterThanOrEqual(170_000)
    expect(await executor.open()).toEqual(facts)
  })

  test('gives numbers, booleans, parsed JSON and lists, and text for everything else', async () => {
    const statement = sql(
      'types',
      `select $1::bigint as big, $2::int as int, $3::float8 as float, $4::numeric as numeric, $5::boolean as bool,
              $6::text as text, $7::text as nothing, $8::jsonb as jsonb, $8::json as json,
              '2030-01-01 00:00:00+00'::timestamptz at time zone 'UTC' as time, B'101' as bits, '' as empty,
              array[1, 2]::bigint[] as bigs, array['a"b', null, 'NULL', '{,}'] as texts, count(*) as counted`,
    )
    const values = [2 ** 53 - 1, -7, 0.1, '12.5', true, '\uFEFFé"\\😀', null, '{"a":[1,{"b":null}]}']
    expect(await executor.query(statement, values)).toEqual([
      {
        big: 2 ** 53 - 1,
        int: -7,
        float: 0.1,
        numeric: 12.5,
        bool: true,
        text: '\uFEFFé"\\😀',
        nothing: null,
        jsonb: { a: [1, { b: null }] },
        json: { a: [1, { b: null }] },
        time: '2030-01-01 00:00:00',
        bits: '101',
        empty: '',
        bigs: [1, 2],
        texts: ['a"b', null, 'NULL', '{,}'],
        counted: 1,
      },
    ])
  })

  test('takes and gives megabytes', async () => {
    const long = 'é'.repeat(3_000_000)
    const [row] = await executor.query<{ text: string }>(sql('long', 'select $1::text as text'), [long])
    expect(row!.text === long).toBe(true)
  })

  test('keeps statements prepared', async () => {
    const prepared = sql('prepared', 'select count(*) as n from pg_prepared_statements where name = $1::text')
    await executor.query(add, [1])
    await executor.query(add, [1])
    expect(await executor.query(prepared, ['add'])).toEqual([{ n: 1 }])
    await executor.script('deallocate all')
    await executor.query(add, [1])
    expect(await read()).toBe(3)
  })

  test('prepares anew what a migration or another text by the same name made stale', async () => {
    const all = sql('all', 'select * from account')
    expect(await executor.query(all, [])).toEqual([{ n: 0 }])
    await executor.script('alter table account add column m int default 2')
    expect(await executor.query(all, [])).toEqual([{ n: 0, m: 2 }])
    await executor.script('alter table account drop column m')
    expect(await executor.transaction((tx) => tx.query(all, []))).toEqual([{ n: 0 }])
    expect(await executor.query(sql('all', 'select 7 as n'), [])).toEqual([{ n: 7 }])
  })

  test('gives the errors of the server, and works on after them', async () => {
    await expect(executor.query(divide, [0])).rejects.toMatchObject({
      code: '22012',
      severity: 'ERROR',
      message: 'division by zero',
    })
    await expect(executor.query(sql('bad', 'selec 1'), [])).rejects.toMatchObject({ code: '42601' })
    await expect(executor.query(add, ['x'])).rejects.toMatchObject({ code: '22P02' })
    expect(await read()).toBe(0)
  })

  test('lets the event loop turn, however much there is to do', async () => {
    let turns = 0
    const tick = (): void => {
      turns++
      cancel = systemClock.after(0, tick)
    }
    let cancel = systemClock.after(0, tick)
    for (let times = 0; times < 500; times++) await read()
    cancel()
    expect(turns).toBeGreaterThan(1)
  })
})

describe('a script', () => {
  test('has several statements, or one that cannot run in a transaction', async () => {
    await executor.script('insert into account values (1); insert into account values (2);')
    await executor.script('vacuum analyze account')
    await executor.script('checkpoint')
    expect(await executor.query(sql('count', 'select count(*) as n from account'), [])).toEqual([{ n: 3 }])
  })

  test('that fails is undone as a whole', async () => {
    await expect(executor.script('update account set n = 7; select 1/0')).rejects.toMatchObject({
      code: '22012',
    })
    expect(await read()).toBe(0)
  })

  test('leaves no transaction behind', async () => {
    await expect(executor.script('begin; update account set n = 7; select 1/0')).rejects.toThrow()
    await executor.script('begin; update account set n = 7')
    expect(await read()).toBe(0)
  })
})

describe('a transaction on PGlite', () => {
  test('is committed, and gives what its work gave', async () => {
    expect(await executor.transaction(async (tx) => [await tx.query(add, [1]), await read(tx)])).toEqual([
      [],
      1,
    ])
    expect(await read()).toBe(1)
  })

  test('is rolled back when its work fails', async () => {
    const failed = executor.transaction(async (tx) => {
      await tx.query(add, [1])
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    expect(await read()).toBe(0)
  })

  test('in which a statement failed is not taken for committed', async () => {
    const failed = executor.transaction(async (tx) => {
      await tx.query(add, [1])
      await tx.query(divide, [0]).catch(ignore)
      return 'all is well'
    })
    await expect(failed).rejects.toMatchObject({ code: '22012' })
    expect(await read()).toBe(0)
  })

  test('has the connection for itself, and everybody else gets a turn after it', async () => {
    let go = ignore
    const gone = new Promise<void>((resolve) => (go = resolve))
    const first = executor.transaction(async (tx) => {
      await tx.query(add, [1])
      await gone
      await tx.query(add, [1])
    })
    const second = executor.transaction((tx) => tx.query(add, [10]))
    const seen = read()
    go()
    await Promise.all([first, second])
    expect(await seen).toBe(12)
  })

  test('refuses calls that do not go through it, at once', async () => {
    const calls: ((on: Executor) => Promise<unknown>)[] = [
      (on) => on.query(sums, []),
      (on) => on.transaction(() => Promise.resolve()),
      (on) => on.script('select 1'),
      (on) => on.listen('x', ignore, ignore),
    ]
    for (const call of calls) {
      const refused = executor.transaction(async (tx) => {
        await tx.query(add, [1])
        await Promise.resolve()
        await call(executor)
      })
      await expect(refused).rejects.toMatchObject({
        code: 'HF_INSIDE_TRANSACTION',
        hint: expect.stringContaining('{ tx }'),
      })
    }
    expect(await read()).toBe(0)
  })

  test('does not refuse what it began, once it is over', async () => {
    let later: Promise<number> | undefined
    let over = ignore
    const isOver = new Promise<void>((resolve) => (over = resolve))
    await executor.transaction((tx) => {
      later = isOver.then(() => read())
      return tx.query(add, [1])
    })
    over()
    expect(await later).toBe(1)
  })

  test('that takes too long is rolled back, and does no more', async () => {
    let leaked: Queryable | undefined
    const late = executor.transaction(async (tx) => {
      leaked = tx
      await tx.query(add, [1])
      await new Promise(ignore)
    })
    const waiting = read()
    await expect(late).rejects.toMatchObject({
      code: 'HF_STORE_UNREACHABLE',
      message: expect.stringContaining('took longer than 1s and was rolled back'),
    })
    expect(await waiting).toBe(0)
    await expect(leaked!.query(add, [1])).rejects.toMatchObject({ code: 'HF_CLOSED' })
    expect(await read()).toBe(0)
  })

  test('that never waits for anything is ended, too', async () => {
    const endless = executor.transaction(async (tx) => {
      for (;;) await tx.query(add, [1])
    })
    await expect(endless).rejects.toThrow(/took longer than 1s|transaction is over/)
    expect(await read()).toBe(0)
  })
})

describe('listening on PGlite', () => {
  test('hears what is committed in this process, and never misses any', async () => {
    const heard: string[] = []
    const gap = vi.fn()
    const notify = sql('notify', 'select pg_notify($1::text, $2::text)')
    const listening = await executor.listen('Wake "up"', (payload) => heard.push(payload), gap)
    await executor.listen('Wake "up"', (payload) => heard.push(`too: ${payload}`), gap)
    expect(listening.listening).toBe(true)
    await executor.query(notify, ['Wake "up"', 'a'])
    await executor.query(notify, ['other', 'no'])
    await executor
      .transaction(async (tx) => {
        await tx.query(notify, ['Wake "up"', 'undone'])
        throw new Error('no')
      })
      .catch(ignore)
    await executor.transaction((tx) => tx.query(notify, ['Wake "up"', 'b']))
    expect(heard).toEqual(['a', 'too: a', 'b', 'too: b'])
    await listening.stop()
    await executor.query(notify, ['Wake "up"', 'c'])
    expect(heard.slice(4)).toEqual(['too: c'])
    expect(gap).not.toHaveBeenCalled()
  })

  test('lets who is told use the database, even from inside a transaction', async () => {
    const notify = sql('notify', 'select pg_notify($1::text, $2::text)')
    const seen: Promise<number>[] = []
    await executor.listen('look', () => seen.push(read()), ignore)
    await executor.transaction(async (tx) => {
      await tx.query(add, [5])
      await tx.query(notify, ['look', ''])
    })
    await until(() => expect(seen).toHaveLength(1))
    expect(await seen[0]).toBe(5)
  })
})

describe('without the package', () => {
  test('the error says what to install', async () => {
    vi.doMock('@electric-sql/pglite', () => {
      throw new Error('Cannot find package')
    })
    try {
      await expect(pgliteExecutor({ directory: null }, { load: loadPglite }).open()).rejects.toMatchObject({
        code: 'HF_BAD_STORE',
        hint: expect.stringContaining('npm install @electric-sql/pglite'),
      })
    } finally {
      vi.doUnmock('@electric-sql/pglite')
    }
  })
})

describe('closing PGlite', () => {
  test('is allowed before it was ever opened', async () => {
    const other = pgliteExecutor({ directory: null })
    await other.close()
    await expect(other.open()).rejects.toMatchObject({ code: 'HF_CLOSED' })
  })
})
