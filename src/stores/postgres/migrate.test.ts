import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../test/support/servers/database.ts'
import { HoldfastError } from '../../errors.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import type { Store } from '../store.ts'
import type { Executor } from './executor.ts'
import { migrate } from './migrate.ts'
import { readNames, type Names } from './names.ts'
import { pgExecutor } from './pg/pg-executor.ts'
import { SCHEMA_VERSION, schemaScript } from './schema.ts'
import { sqlStore } from './sql-store.ts'

const names = readNames({})

let database: Database
const opened: Executor[] = []

beforeEach(async () => {
  database = await freshDatabase(sharedPostgres(18))
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map((executor) => executor.close()))
  await database.drop()
})

function connect(): Executor {
  const executor = pgExecutor({ connectionString: database.url, connections: 1 })
  opened.push(executor)
  return executor
}

function store(options: { migrate: boolean }): Store {
  const parts = { names, clock: systemClock, random: systemRandom }
  return sqlStore({ ...parts, ...options, executor: connect() })
}

async function query<Row>(text: string): Promise<Row[]> {
  return connect().query<Row>({ name: 'test', text }, [])
}

async function versions(): Promise<number[]> {
  const rows = await query<{ version: number }>('select version from holdfast.schema_info')
  return rows.map(({ version }) => version)
}

/** Names of everything that exists in a schema. */
async function objects(schema: string): Promise<string[]> {
  const rows = await query<{ name: string }>(`select relname as name from pg_class
      where relnamespace = (select oid from pg_namespace where nspname = '${schema}')
    union select proname from pg_proc where pronamespace = (select oid from pg_namespace where nspname = '${schema}')
    order by 1`)
  return rows.map(({ name }) => name)
}

describe('an empty database', () => {
  test('is prepared once by twenty that open it at the same moment, and all of them can use it', async () => {
    const stores = Array.from({ length: 20 }, () => store({ migrate: true }))
    await Promise.all(stores.map((one) => one.open()))
    expect(await versions()).toEqual([SCHEMA_VERSION])
    const answers = await Promise.all(stores.map((one) => one.admin.queues()))
    expect(answers).toEqual(stores.map(() => []))
  })

  test('is refused by a program that may not prepare it, and left as it is', async () => {
    await expect(store({ migrate: false }).open()).rejects.toMatchObject({
      code: 'HF_SCHEMA_MISSING',
      message: expect.stringContaining('does not exist'),
    })
    expect(await objects('holdfast')).toEqual([])
  })

  test('is accepted by a program that may not prepare it once the script was run by hand, any number of times', async () => {
    await connect().script(schemaScript(names))
    const before = await objects('holdfast')
    await connect().script(schemaScript(names))
    expect(await objects('holdfast')).toEqual(before)
    await store({ migrate: false }).open()
    expect(await versions()).toEqual([SCHEMA_VERSION])
  })

  test('stays empty if the script fails midway', async () => {
    const executor = connect()
    const failing: Executor = {
      ...boundTo(executor),
      script: (sql) => executor.script(sql.replace('create view', 'select 1 / 0; create view')),
    }
    await expect(
      migrate(failing, names, { apply: true, clock: systemClock, random: systemRandom }),
    ).rejects.toThrow('division by zero')
    expect(await objects('holdfast')).toEqual([])
    await store({ migrate: true }).open()
    expect(await versions()).toEqual([SCHEMA_VERSION])
  })
})

describe('the script for another schema', () => {
  const other: Names = readNames({ schema: 'x', prefix: 'p_' })

  test('names that schema alone', () => {
    expect(schemaScript(other)).not.toMatch(/holdfast/i)
  })

  test('makes everything in that schema, under the prefix', async () => {
    await connect().script(schemaScript(other))
    expect(await objects('holdfast')).toEqual([])
    const made = await objects('x')
    expect(made.filter((name) => !name.startsWith('p_'))).toEqual([])
  })
})

describe('a schema of another version', () => {
  async function setVersion(version: number, oldestProgram: number): Promise<void> {
    await connect().script(
      `update holdfast.schema_info set version = ${version}, oldest_program = ${oldestProgram}`,
    )
  }

  test('that is newer than the program and no longer supports it is refused', async () => {
    await store({ migrate: true }).open()
    await setVersion(9999, 9998)
    for (const apply of [true, false]) {
      const refused = await store({ migrate: apply })
        .open()
        .catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(HoldfastError)
      expect(refused).toMatchObject({ code: 'HF_SCHEMA_TOO_NEW', message: expect.stringContaining('9999') })
    }
    expect(await versions()).toEqual([9999])
  })

  test('that is newer but still supports the program is used, and left as it is', async () => {
    await store({ migrate: true }).open()
    await setVersion(SCHEMA_VERSION + 1, SCHEMA_VERSION)
    await store({ migrate: true }).open()
    expect(await versions()).toEqual([SCHEMA_VERSION + 1])
  })

  test('is not overwritten by the script of an older one', async () => {
    await store({ migrate: true }).open()
    await setVersion(9999, 1)
    await expect(connect().script(schemaScript(names))).rejects.toThrow('newer than version')
  })

  test('that is too old is refused by a program that may not migrate it', async () => {
    await store({ migrate: true }).open()
    await setVersion(0, 0)
    await expect(store({ migrate: false }).open()).rejects.toMatchObject({
      code: 'HF_SCHEMA_MISSING',
      message: expect.stringContaining('version 0'),
    })
  })
})

describe('functions', () => {
  test('of an earlier version are dropped when the set is replaced, and nothing else is', async () => {
    await store({ migrate: true }).open()
    await connect().script(`create function holdfast.gone() returns int language sql as 'select 1';
      create function holdfast.yours() returns int language sql as 'select 1';
      update holdfast.schema_info set digest = 'older', headers = headers || '{"function holdfast.gone()": ""}'`)
    await store({ migrate: true }).open()
    const made = await objects('holdfast')
    expect(made).toContain('yours')
    expect(made).not.toContain('gone')
  })

  /** As if a set were installed in which these have other headers. */
  async function otherVersion(...names: readonly string[]): Promise<void> {
    await connect().script(`update holdfast.schema_info set digest = 'older', headers = headers || (
      select jsonb_object_agg(key, 'other') from jsonb_object_keys(headers) as key
      where key ~ '\\."(${names.join('|')})"')`)
  }

  test('types and views are all known by their headers, so that the next version can replace them', async () => {
    await store({ migrate: true }).open()
    const made = `select relname::text as name from pg_class
        where relnamespace = 'holdfast'::regnamespace and relkind in ('v', 'c')
      union select oid::regprocedure::oid::text from pg_proc where pronamespace = 'holdfast'::regnamespace`
    const known = `select case split_part(key, ' ', 1)
        when 'function' then to_regprocedure(substr(key, 10))::oid::text else split_part(key, '"', 4) end as name
      from holdfast.schema_info cross join lateral jsonb_object_keys(headers) as key`
    expect(await query(`(${made}) except (${known}) union all ((${known}) except (${made}))`)).toEqual([])
  })

  test('and views whose header is the same are replaced in place, with what depends on them and their grants', async () => {
    await store({ migrate: true }).open()
    const grants = `select relacl::text as grants from pg_class where oid = 'holdfast.job_queue'::regclass
      union all select proacl::text from pg_proc where oid = 'holdfast.now_ms'::regproc`
    await connect().script(`create view mine as select id, holdfast.now_ms() from holdfast.job_queue;
      grant select on holdfast.job_queue to public; grant execute on function holdfast.now_ms() to pg_monitor;
      create or replace function holdfast.bits(p_mask varbit) returns integer language sql as 'select 0'`)
    const before = await query(grants)
    await otherVersion('settle', 'claim')
    await store({ migrate: true }).open()
    expect(await query('select count(*)::int as jobs from mine')).toEqual([{ jobs: 0 }])
    expect(await query(grants)).toEqual(before)
    expect(await query("select holdfast.bits(B'101') as bits")).toEqual([{ bits: 2 }])
  })

  test('on which others of ours depend can be replaced', async () => {
    await store({ migrate: true }).open()
    const before = await objects('holdfast')
    await otherVersion('waiting', 'bits')
    await store({ migrate: true }).open()
    expect(await objects('holdfast')).toEqual(before)
  })

  test('that something of yours depends on are not dropped behind your back', async () => {
    await store({ migrate: true }).open()
    await connect().script('create view mine as select id from holdfast.job_queue')
    await otherVersion('job_queue')
    await expect(store({ migrate: true }).open()).rejects.toThrow(
      'view mine depends on view holdfast.job_queue',
    )
    await connect().script('select * from mine; drop view mine')
    await store({ migrate: true }).open()
  })

  test('are not waited for behind an old transaction, with everybody else in the queue', async () => {
    await store({ migrate: true }).open()
    await otherVersion('job_queue')
    const executor = connect()
    let gaveUp = (): void => undefined
    const first = new Promise<void>((resolve) => (gaveUp = resolve))
    const watched: Executor = {
      ...boundTo(executor),
      script: (sql) => executor.script(sql).finally(gaveUp),
    }
    let upgrade: Promise<void> | undefined
    await connect().transaction(async (old) => {
      await old.script('select from holdfast.job_queue')
      upgrade = migrate(watched, names, { apply: true, clock: systemClock, random: systemRandom })
      await first
      expect(await query('select digest from holdfast.schema_info')).toEqual([{ digest: 'older' }])
    })
    await upgrade
    expect(await query('select digest from holdfast.schema_info')).not.toEqual([{ digest: 'older' }])
  })
})

describe('names that are taken', () => {
  const open = (schema: string, prefix = ''): Promise<void> =>
    migrate(connect(), readNames({ schema, prefix }), {
      apply: true,
      clock: systemClock,
      random: systemRandom,
    })

  test('functions and views of yours that are called like ours are never dropped', async () => {
    await connect().script(
      `create function public.report(integer) returns integer language sql as 'select 1'`,
    )
    await open('public')
    await connect().script(`update public.schema_info set digest = 'older', headers = (
        select jsonb_object_agg(key, 'other') from jsonb_object_keys(headers) as key where key <> 'view "public"."job_queue"');
      drop view public.job_queue; create view public.job_queue as select 1 as yours`)
    await expect(open('public')).rejects.toMatchObject({
      code: 'HF_SCHEMA_CLASH',
      message: expect.stringContaining('view "public"."job_queue" already exists'),
    })
    expect(await query('select public.report(1), yours from public.job_queue')).toEqual([
      { report: 1, yours: 1 },
    ])
    await connect().script('drop view public.job_queue')
    await open('public')
    expect(await query('select public.report(1)')).toEqual([{ report: 1 }])
  })

  test.each([
    ['function', `create function public.now_ms() returns bigint language sql as 'select 1::bigint'`],
    ['view', 'create view public.job_queue as select 1 as yours'],
    ['type', 'create type public.waiting as (yours integer)'],
    ['table where we need a view', 'create table public.job_queue (yours integer)'],
    ['table where we need a table', 'create table public.ready (yours integer)'],
    ['table where we need our first table', 'create table public.schema_info (yours integer)'],
  ])('a %s of yours is not taken for ours, and nothing is installed', async (_, sql) => {
    await connect().script(sql)
    const before = await objects('public')
    await expect(open('public')).rejects.toMatchObject({
      code: 'HF_SCHEMA_CLASH',
      hint: expect.stringContaining('prefix'),
    })
    expect(await objects('public')).toEqual(before)
  })

  test.each([
    ['', 'job_'],
    ['job_', ''],
    ['', 'packed_'],
    ['packed_', ''],
  ])('the prefixes "%s" and "%s" cannot share a schema; the first goes on working', async (first, second) => {
    await open('shared', first)
    const before = await objects('shared')
    await expect(open('shared', second)).rejects.toMatchObject({ code: 'HF_SCHEMA_CLASH' })
    expect(await objects('shared')).toEqual(before)
    await open('shared', first)
    await open('shared', 'other_')
  })
})

/** Its methods live in its class. */
function boundTo(executor: Executor): Executor {
  return {
    open: () => executor.open(),
    query: (...call) => executor.query(...call),
    script: (sql) => executor.script(sql),
    transaction: (work) => executor.transaction(work),
    listen: (...call) => executor.listen(...call),
    close: () => executor.close(),
  }
}
