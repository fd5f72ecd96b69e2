import { Client, type ClientConfig } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { withClient } from './client.ts'
import { freshDatabase, portOf, sharedPostgres, type Database } from './database.ts'
import { freePort } from './port.ts'
import { startProxy, type TcpProxy } from './tcp-proxy.ts'
import { eventually } from '../until.ts'

const SHORT_MS = 100

let database: Database
let proxy: TcpProxy

beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  await withClient(database.url, (client) => client.query('CREATE TABLE t (value text)'))
})
afterAll(() => database.drop())
beforeEach(async () => {
  proxy = await startProxy(portOf(database.url))
})
afterEach(() => proxy.close())

async function connect(config: ClientConfig = {}): Promise<Client> {
  const client = new Client({ connectionString: proxy.url(database.url), ...config })
  client.on('error', () => undefined)
  onTestFinished(async () => {
    proxy.cutAll()
    await client.end()
  })
  await client.connect()
  return client
}

async function values(client: Pick<Client, 'query'>, sql: string): Promise<unknown[]> {
  const { rows } = await client.query<{ value: unknown }>(sql)
  return rows.map((row) => row.value)
}

/** Bypasses the proxy. */
const directly = (sql: string): Promise<unknown[]> =>
  withClient(database.url, (client) => values(client, sql))

const answers = (sql: string, expected: readonly unknown[]): Promise<void> =>
  eventually(async () => expect(await directly(sql)).toEqual(expected))

describe('a proxy that passes', () => {
  test('carries bytes both ways, however many', async () => {
    const client = await connect()
    const text = 'x'.repeat(5_000_000)
    expect((await client.query('SELECT length($1) AS value, $1 AS text', [text])).rows).toEqual([
      { value: text.length, text },
    ])
  })

  test('counts connections, and hands on their end', async () => {
    const client = await connect()
    const [pid] = await values(client, 'SELECT pg_backend_pid() AS value')
    expect(proxy.connections).toBe(1)
    await client.end()
    await proxy.changed.until(() => proxy.connections === 0)
    await answers(`SELECT pid AS value FROM pg_stat_activity WHERE pid = ${String(pid)}`, [])
  })

  test('hands on that the server ended a session', async () => {
    const client = await connect()
    const [pid] = await values(client, 'SELECT pg_backend_pid() AS value')
    const ended = new Promise((resolve) => client.once('end', resolve))
    await directly(`SELECT pg_terminate_backend(${String(pid)})`)
    await ended
    await proxy.changed.until(() => proxy.connections === 0)
  })

  test('hangs up if the server is down', async () => {
    const deaf = await startProxy(await freePort())
    onTestFinished(() => deaf.close())
    await expect(withClient(deaf.url(database.url), () => Promise.resolve())).rejects.toThrow(
      /terminated|ECONNRESET/,
    )
  })
})

describe('a proxy that is silent', () => {
  test('keeps requests from the server and says nothing', async () => {
    const client = await connect({ query_timeout: SHORT_MS })
    proxy.mode = 'silent'
    await expect(client.query(`INSERT INTO t VALUES ('silent')`)).rejects.toThrow(/timeout/)
    expect(await directly(`SELECT value FROM t WHERE value = 'silent'`)).toEqual([])
    expect(proxy.connections).toBe(1)
  })

  test('keeps answers from the client', async () => {
    const client = await connect({ query_timeout: 1_000 })
    await directly('CREATE TABLE gate ()')
    const gate = new Client(database.url)
    await gate.connect()
    await gate.query('BEGIN; LOCK TABLE gate')
    const blocked = client.query(`LOCK TABLE gate; INSERT INTO t VALUES ('late')`)
    const outcome = expect(blocked).rejects.toThrow(/timeout/)
    const locks = `SELECT granted AS value FROM pg_locks WHERE relation = 'gate'::regclass ORDER BY 1`
    await answers(locks, [false, true])
    proxy.mode = 'silent'
    await gate.query('COMMIT')
    await gate.end()
    await outcome
    await answers(`SELECT value FROM t WHERE value = 'late'`, ['late'])
  })

  test('does not tell the server that the client is gone', async () => {
    const client = await connect()
    const [pid] = await values(client, 'SELECT pg_backend_pid() AS value')
    proxy.mode = 'silent'
    void client.end()
    await expect(withClient(proxy.url(database.url), () => Promise.resolve(), SHORT_MS)).rejects.toThrow()
    const session = `SELECT pid AS value FROM pg_stat_activity WHERE pid = ${String(pid)}`
    expect(await directly(session)).toEqual([pid])
    proxy.cutAll()
    await answers(session, [])
  })

  test('accepts connections and never answers them', async () => {
    proxy.mode = 'silent'
    await expect(connect({ connectionTimeoutMillis: SHORT_MS })).rejects.toThrow(/timeout/)
  })

  test('is passed by new connections once it passes again, while old ones stay silent', async () => {
    const old = await connect({ query_timeout: SHORT_MS })
    proxy.mode = 'silent'
    proxy.mode = 'pass'
    await expect(old.query('SELECT 1')).rejects.toThrow(/timeout/)
    expect(await values(await connect(), 'SELECT 1 AS value')).toEqual([1])
  })
})

describe('a proxy that refuses', () => {
  test('hangs up on new connections, while old ones go on', async () => {
    const old = await connect()
    proxy.mode = 'refuse'
    await expect(connect()).rejects.toThrow(/terminated|ECONNRESET/)
    expect(await values(old, 'SELECT 1 AS value')).toEqual([1])
    expect(proxy.connections).toBe(1)
  })
})

describe('a proxy that cuts', () => {
  test('breaks what is under way, and takes new connections', async () => {
    const client = await connect()
    const query = client.query('SELECT pg_sleep(60)')
    const broken = expect(query).rejects.toThrow(/terminated|ECONNRESET/)
    proxy.cutAll()
    await broken
    expect(proxy.connections).toBe(0)
    expect(await values(await connect(), 'SELECT 1 AS value')).toEqual([1])
  })
})

describe('a proxy that loses a reply', () => {
  const inserts = (chunk: Buffer): boolean => chunk.includes('INSERT')

  test('does so after the server has done the work', async () => {
    const client = await connect()
    const lost = proxy.loseNextReply(inserts)
    expect(await values(client, 'SELECT 1 AS value')).toEqual([1])
    await expect(client.query(`INSERT INTO t VALUES ($1)`, ['lost'])).rejects.toThrow(/terminated|ECONNRESET/)
    await lost
    expect(await directly(`SELECT value FROM t WHERE value = 'lost'`)).toEqual(['lost'])
  })

  test('waits for the end of a long one, at which the server commits', async () => {
    const client = await connect()
    const lost = proxy.loseNextReply(inserts)
    const insert = `INSERT INTO t SELECT 'long' FROM generate_series(1, 20000) RETURNING repeat(value, 100)`
    await expect(client.query(insert)).rejects.toThrow(/terminated|ECONNRESET/)
    await lost
    expect(await directly(`SELECT count(*)::int AS value FROM t WHERE value = 'long'`)).toEqual([20_000])
  })

  test('loses one, and leaves other connections alone', async () => {
    const [first, second] = [await connect(), await connect()]
    const lost = proxy.loseNextReply(inserts)
    await expect(first.query(`INSERT INTO t VALUES ('one')`)).rejects.toThrow(/terminated|ECONNRESET/)
    await lost
    await second.query(`INSERT INTO t VALUES ('two')`)
    expect(await directly(`SELECT value FROM t WHERE value IN ('one', 'two') ORDER BY 1`)).toEqual([
      'one',
      'two',
    ])
  })

  test('says so if the server hangs up instead', async () => {
    const client = await connect()
    const [pid] = await values(client, 'SELECT pg_backend_pid() AS value')
    const lost = proxy.loseNextReply((chunk) => chunk.includes('pg_sleep'))
    const reported = expect(lost).rejects.toThrow('before the answer was whole')
    const query = expect(client.query('SELECT pg_sleep(60)')).rejects.toThrow()
    await answers(`SELECT state AS value FROM pg_stat_activity WHERE pid = ${String(pid)}`, ['active'])
    // The error that it sends before it closes is swallowed, too.
    await directly(`SELECT pg_terminate_backend(${String(pid)})`)
    await Promise.all([reported, query])
  })
})
