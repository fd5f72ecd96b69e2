import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  freshDatabase,
  portOf,
  sharedPostgres,
  type Database,
} from '../../../../test/support/servers/database.ts'
import { startProxy, type TcpProxy } from '../../../../test/support/servers/tcp-proxy.ts'
import { eventually } from '../../../../test/support/until.ts'
import type { Executor, Queryable, Statement } from '../executor.ts'
import { pgExecutor } from './pg-executor.ts'

let database: Database
let executor: Executor

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
})

afterAll(() => database.drop())

beforeEach(async () => {
  executor = pgExecutor({ connectionString: database.url })
  await executor.script(`
    drop table if exists account; create table account (id int primary key, n int not null);
    insert into account values (1, 0), (2, 0);
    drop sequence if exists tries; create sequence tries;
    create or replace function flaky(failures int, state text) returns int language plpgsql as $$
    begin
      if nextval('tries') <= failures then raise exception 'try again' using errcode = state; end if;
      return currval('tries');
    end $$`)
})

afterEach(() => executor.close())

const sql = (name: string, text: string): Statement => ({ name, text })
const add = sql('add', 'update account set n = n + 1 where id = $1::int')
const sums = sql('sums', 'select n from account order by id')
const flaky = sql('flaky', 'select flaky($1::int, $2::text) as tries')
const divide = sql('divide', 'select 1 / $1::int')
const read = async (on: Queryable = executor): Promise<number[]> =>
  (await on.query<{ n: number }>(sums, [])).map(({ n }) => n)

describe('a transaction', () => {
  test('is committed when its work is done, and gives what that gave', async () => {
    const result = await executor.transaction(async (tx) => {
      await tx.query(add, [1])
      expect(await read()).toEqual([0, 0])
      await tx.query(add, [2])
      return 'done'
    })
    expect(result).toBe('done')
    expect(await read()).toEqual([1, 1])
  })

  test('is rolled back when its work fails, with that error', async () => {
    const failed = executor.transaction(async (tx) => {
      await tx.query(add, [1])
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    expect(await read()).toEqual([0, 0])
  })

  test('in which a statement failed is not taken for committed, even if its work says that all is well', async () => {
    const failed = executor.transaction(async (tx) => {
      await tx.query(add, [1])
      await tx.query(divide, [0]).catch(() => undefined)
      return 'all is well'
    })
    await expect(failed).rejects.toMatchObject({ code: 'HF_STORE_REFUSED', cause: { code: '22012' } })
    expect(await read()).toEqual([0, 0])
  })

  test('is read committed, whatever the default of the database', async () => {
    const url = new URL(database.url)
    url.searchParams.set('options', '-c default_transaction_isolation=serializable')
    const strict = pgExecutor({ connectionString: url.href })
    const level = sql('level', `select current_setting('transaction_isolation') as level`)
    expect(await strict.transaction((tx) => tx.query(level, []))).toEqual([{ level: 'read committed' }])
    await strict.close()
  })

  test('cannot be used when it is over', async () => {
    const leaked = await executor.transaction((tx) => Promise.resolve(tx))
    await expect(leaked.query(add, [1])).rejects.toMatchObject({
      code: 'HF_CLOSED',
      message: 'The transaction is over: could not run add in it.',
    })
    expect(await read()).toEqual([0, 0])
  })

  test('runs what is asked at once in the order of asking', async () => {
    const values = await executor.transaction((tx) =>
      Promise.all([tx.query(add, [1]), read(tx), tx.query(add, [1]), read(tx), tx.query(add, [2]), read(tx)]),
    )
    expect([values[1], values[3], values[5]]).toEqual([
      [1, 0],
      [2, 0],
      [2, 1],
    ])
  })
})

describe('a conflict', () => {
  test('that is a deadlock is tried again, until both are through', async () => {
    let waiting: (() => void)[] = []
    // In their first tries, both have their first row before either asks for its second.
    const bothAreHere = (): Promise<void> =>
      new Promise((resolve) => {
        waiting.push(resolve)
        if (waiting.length < 2) return
        for (const go of waiting) go()
        waiting = []
      })
    const tries = [0, 0]
    const transfer = (who: number, first: number, second: number): Promise<void> =>
      executor.transaction(async (tx) => {
        await tx.query(add, [first])
        if (++tries[who]! === 1) await bothAreHere()
        await tx.query(add, [second])
      })
    await Promise.all([transfer(0, 1, 2), transfer(1, 2, 1)])
    expect(await read()).toEqual([2, 2])
    expect(tries[0]! + tries[1]!).toBeGreaterThanOrEqual(3)
  })

  test.each(['40001', '40P01'])('%s in a lone statement is tried again', async (state) => {
    expect(await executor.query(flaky, [4, state])).toEqual([{ tries: 5 }])
  })

  test('is tried five times and no more', async () => {
    await expect(executor.query(flaky, [5, '40001'])).rejects.toMatchObject({ code: '40001' })
    expect(await executor.query(flaky, [0, '40001'])).toEqual([{ tries: 6 }])
  })

  test('is tried again even if the work turned it into an error of its own', async () => {
    const result = executor.transaction(async (tx) => {
      try {
        return await tx.query(flaky, [2, '40001'])
      } catch {
        throw new Error('it did not work')
      }
    })
    expect(await result).toEqual([{ tries: 3 }])
  })

  test('is not what other errors are', async () => {
    await expect(executor.query(flaky, [1, '23505'])).rejects.toMatchObject({ code: '23505' })
    expect(await executor.query(flaky, [0, '23505'])).toEqual([{ tries: 2 }])
  })
})

describe('a function that an upgrade replaces', () => {
  test.each(['42883', '42P01', '42804'])('in the middle of a call is called again: %s', async (state) => {
    expect(await executor.query(flaky, [2, state])).toEqual([{ tries: 3 }])
    const again = executor.transaction((tx) => tx.query(flaky, [5, state]))
    expect(await again).toEqual([{ tries: 6 }])
  })

  test('with other parameters while its caller runs is found by the next try', async () => {
    await executor.script(`
      create or replace function inner_step(a int) returns text language sql as $$ select 'old' $$;
      create or replace function outer_step() returns text language plpgsql as $$
      begin
        perform pg_advisory_xact_lock(4711);
        return inner_step(1);
      end $$`)
    const step = sql('step', 'select outer_step() as step')
    let call: Promise<unknown> | undefined
    await executor.transaction(async (upgrade) => {
      await upgrade.script('select pg_advisory_xact_lock(4711)')
      call = executor.query(step, [])
      const waits = sql('waits', `select count(*)::int as n from pg_locks where objid = 4711 and not granted`)
      await eventually(async () => expect(await executor.query(waits, [])).toEqual([{ n: 1 }]))
      await upgrade.script(`
        drop function inner_step(int);
        create function inner_step(a int, b int) returns text language sql as $$ select 'new' $$;
        create or replace function outer_step() returns text language sql as $$ select inner_step(1, 2) $$`)
    })
    expect(await call).toEqual([{ step: 'new' }])
  })

  test('and that stays away is said to be missing', async () => {
    await expect(executor.query(sql('gone', 'select no_such_function()'), [])).rejects.toMatchObject({
      code: 'HF_STORE_MISSING',
      cause: { code: '42883' },
    })
  })

  test('is not what is missing in statements of a handler', async () => {
    let runs = 0
    const failed = executor.transaction((tx) => {
      runs++
      return tx.handle.query('select no_such_function()')
    })
    await expect(failed).rejects.toMatchObject({ code: '42883' })
    expect(runs).toBe(1)
  })
})

describe('a transaction whose connection is lost', () => {
  let proxy: TcpProxy
  let far: Executor

  beforeEach(async () => {
    proxy = await startProxy(portOf(database.url))
    far = pgExecutor({ connectionString: proxy.url(database.url), queryTimeoutMs: 500 })
    await far.open()
  })

  afterEach(async () => {
    await far.close()
    await proxy.close()
  })

  test('during the commit says that the outcome is not known', async () => {
    const lost = proxy.loseNextReply((chunk) => chunk.includes('commit\0'))
    const result = far.transaction((tx) => tx.query(add, [1]))
    await expect(result).rejects.toMatchObject({
      code: 'HF_STORE_UNREACHABLE',
      message: expect.stringContaining('is not known'),
    })
    await lost
    expect(await read()).toEqual([1, 0])
  })

  test('during a commit that is never answered says so at the deadline', async () => {
    const result = far.transaction(async (tx) => {
      await tx.query(add, [1])
      proxy.mode = 'silent'
    })
    await expect(result).rejects.toMatchObject({
      message: expect.stringContaining('is not known'),
      cause: { message: expect.stringContaining('did not answer within 500ms') },
    })
  })

  test('before the commit is undone, with the error of the connection', async () => {
    const result = far.transaction(async (tx) => {
      await tx.query(add, [1])
      proxy.cutAll()
      await tx.query(add, [2])
    })
    const error = await result.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toMatchObject({ message: expect.stringContaining('not known') })
    expect(await read()).toEqual([0, 0])
    await far.transaction((tx) => tx.query(add, [1]))
    expect(await read()).toEqual([1, 0])
  })

  test('is not tried again: the caller decides', async () => {
    let tries = 0
    const result = far.transaction(async (tx) => {
      tries++
      await tx.query(add, [1])
      proxy.cutAll()
      await tx.query(add, [2])
    })
    await expect(result).rejects.toThrow()
    expect(tries).toBe(1)
  })
})
