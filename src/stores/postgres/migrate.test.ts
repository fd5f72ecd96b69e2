import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../../../test/support/servers/database.ts'
import { HoldfastError } from '../../errors.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import type { Store } from '../store.ts'
import type { Executor } from './executor.ts'
import { migrate } from './migrate.ts'
import { migrationScript, readMigrations } from './migrations.ts'
import { readNames } from './names.ts'
import { pgExecutor } from './pg/pg-executor.ts'
import { sqlStore } from './sql-store.ts'

const names = readNames({})
const versions = readMigrations(names).map(({ version }) => version)

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
  const parts = { kind: 'postgres' as const, names, clock: systemClock, random: systemRandom }
  return sqlStore({ ...parts, ...options, executor: connect() })
}

async function applied(): Promise<number[]> {
  const rows = await connect().query<{ version: number }>(
    { name: 'applied', text: 'select version from holdfast.migration order by applied_at, version' },
    [],
  )
  return rows.map(({ version }) => version)
}

async function tables(): Promise<number> {
  const [row] = await connect().query<{ n: number }>(
    { name: 'tables', text: `select count(*) as n from pg_tables where schemaname = 'holdfast'` },
    [],
  )
  return row?.n ?? 0
}

describe('an empty database', () => {
  test('is prepared once by twenty that open it at the same moment, and all of them can use it', async () => {
    const stores = Array.from({ length: 20 }, () => store({ migrate: true }))
    await Promise.all(stores.map((one) => one.open()))
    expect(await applied()).toEqual(versions)
    const answers = await Promise.all(stores.map((one) => one.admin.queues()))
    expect(answers).toEqual(stores.map(() => []))
  })

  test('is refused by who may not prepare it, and left as it is', async () => {
    await expect(store({ migrate: false }).open()).rejects.toMatchObject({
      code: 'HF_SCHEMA_MISSING',
      message: expect.stringContaining(readMigrations(names)[0]!.name),
    })
    expect(await tables()).toBe(0)
  })

  test('is accepted by who may not prepare it, once the script was run by hand', async () => {
    await connect().script(migrationScript(names))
    await store({ migrate: false }).open()
    expect(await applied()).toEqual(versions)
  })

  test('stays empty where a migration fails midway', async () => {
    const executor = connect()
    const failing: Executor = {
      ...boundTo(executor),
      transaction: (work) =>
        executor.transaction((tx) =>
          work({
            ...tx,
            query: (...call) => tx.query(...call),
            script: (sql) => tx.script(sql.includes('0003_') ? 'select 1 / 0' : sql),
          }),
        ),
    }
    await expect(migrate(failing, names, { apply: true })).rejects.toMatchObject({ code: '22012' })
    expect(await tables()).toBe(0)
    await store({ migrate: true }).open()
    expect(await applied()).toEqual(versions)
  })
})

describe('a schema of another version', () => {
  test('that is newer than the program is refused, whether it may migrate or not', async () => {
    await store({ migrate: true }).open()
    await connect().script(`insert into holdfast.migration (version, name) values (9999, '9999_future.sql')`)
    for (const apply of [true, false]) {
      const refused = await store({ migrate: apply })
        .open()
        .catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(HoldfastError)
      expect(refused).toMatchObject({ code: 'HF_SCHEMA_TOO_NEW', message: expect.stringContaining('9999') })
    }
    expect(await applied()).toEqual([...versions, 9999])
  })

  test('that is older is brought up to date by what it lacks alone', async () => {
    const older = readMigrations(names).slice(0, -1)
    const full = migrationScript(names)
    const newest = `-- ${readMigrations(names).at(-1)!.name}`
    await connect().script(`${full.slice(0, full.indexOf(newest))} commit;`)
    expect(await applied()).toEqual(older.map(({ version }) => version))
    await expect(store({ migrate: false }).open()).rejects.toMatchObject({ code: 'HF_SCHEMA_MISSING' })
    await Promise.all([1, 2, 3].map(() => store({ migrate: true }).open()))
    expect(await applied()).toEqual(versions)
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
