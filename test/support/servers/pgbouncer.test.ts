import { Client } from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { withClient } from './client.ts'
import { freshDatabase, portOf, sharedPostgres, type Database } from './database.ts'
import { pgBouncerMissing, startPgBouncer, type PgBouncer } from './pgbouncer.ts'

let database: Database
let bouncer: PgBouncer | null

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  bouncer = await startPgBouncer({ port: portOf(database.url) })
}, 30_000)
afterAll(async () => {
  await bouncer?.dispose()
  await database.drop()
})

describe('a PgBouncer', () => {
  let url: string
  beforeEach((context) => {
    if (bouncer === null) context.skip(pgBouncerMissing())
    else url = bouncer.url(new URL(database.url).pathname.slice(1))
  })

  async function connect(): Promise<Client> {
    const client = new Client(url)
    onTestFinished(() => client.end())
    await client.connect()
    return client
  }

  async function backend(client: Client): Promise<number | undefined> {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    return rows[0]?.pid
  }

  test('passes queries to the database', async () => {
    const { rows } = await withClient(url, (client) =>
      client.query('SELECT $1::int + 1 AS sum, current_database() AS name', [1]),
    )
    expect(rows).toEqual([{ sum: 2, name: new URL(database.url).pathname.slice(1) }])
  })

  test('gives a client another session for each transaction', async () => {
    const [one, other] = [await connect(), await connect()]
    const before = await backend(one)
    await other.query('BEGIN')
    expect(await backend(other)).toBe(before)
    expect(await backend(one)).not.toBe(before)
    await other.query('COMMIT')
  })

  test('takes the settings that clients send when they connect', async () => {
    const config = { connectionString: url, statement_timeout: 1000, options: '-c search_path=x' }
    const client = new Client({ ...config, application_name: 'holdfast' })
    onTestFinished(() => client.end())
    await client.connect()
    expect(await backend(client)).toBeTypeOf('number')
  })

  test('has a console', async () => {
    const console = bouncer?.url('pgbouncer') ?? ''
    const { rows } = await withClient(console, (client) => client.query('SHOW DATABASES'))
    expect(rows).toContainEqual(expect.objectContaining({ name: 'pgbouncer' }))
  })
})

test('that PgBouncer is missing is said in one line, with the reason', () => {
  expect(pgBouncerMissing()).toMatch(/^The suites behind PgBouncer are skipped: .+\.$/)
})
