import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { root } from '../tree.ts'
import { eventually } from '../until.ts'
import { withClient } from './client.ts'
import { postgresVersions } from './database.ts'
import { startPostgres, type PostgresServer } from './postgres-server.ts'

const START_MS = 60_000

async function valueOf(url: string, sql: string): Promise<unknown> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ value: unknown }>(sql)
    return rows[0]?.value
  })
}

// Unlike one that waits, a session that counts does not notice that its postmaster is dead.
const countsLong = `DO $$ BEGIN
  RAISE NOTICE 'at work';
  PERFORM count(*) FROM generate_series(1, 2000000);
END $$`

async function dataOf(url: string): Promise<string> {
  return String(await valueOf(url, `SELECT current_setting('data_directory') AS value`))
}

describe.each(postgresVersions())('a PostgreSQL %i of its own', (version) => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres({ version, settings: { fsync: 'off', max_connections: '17' } })
  }, START_MS)
  afterAll(() => server.dispose())

  test('has the version and the settings that were asked for', async () => {
    const number = await valueOf(server.url(), `SELECT current_setting('server_version_num') AS value`)
    expect(Math.trunc(Number(number) / 10_000)).toBe(version)
    expect(await valueOf(server.url(), `SELECT current_setting('max_connections') AS value`)).toBe('17')
  })

  test('creates databases, whatever their name', async () => {
    const url = await server.createDatabase('a "quoted" name')
    expect(url).toBe(server.url('a "quoted" name'))
    expect(await valueOf(url, 'SELECT current_database() AS value')).toBe('a "quoted" name')
  })

  test.each(['fast', 'immediate'] as const)(
    'keeps its port and what was committed over a restart (%s)',
    async (mode) => {
      const { port } = server
      const url = await server.createDatabase(`restart_${mode}`)
      await withClient(url, (client) => client.query('CREATE TABLE t AS SELECT 42 AS value'))

      await server.restart(mode)

      expect(server.port).toBe(port)
      expect(await valueOf(url, 'SELECT value FROM t')).toBe(42)
      const wasCrash = server.log().includes('was not properly shut down')
      expect(wasCrash).toBe(mode === 'immediate')
    },
  )

  test('is down between stop and start, and sessions are told', async () => {
    const client = new Client(server.url())
    const lost = new Promise((resolve) => client.once('end', resolve))
    client.on('error', () => undefined)
    await client.connect()

    await server.stop('fast')
    await lost
    expect(server.running).toBe(false)
    await expect(valueOf(server.url(), 'SELECT 1')).rejects.toThrow('ECONNREFUSED')

    await server.start()
    expect(await valueOf(server.url(), 'SELECT 1 AS value')).toBe(1)
  })

  test('starts again after its postmaster was killed, although a session is still at work', async () => {
    const client = new Client(server.url())
    client.on('error', () => undefined)
    await client.connect()
    const isAtWork = new Promise((resolve) => client.once('notice', resolve))
    const query = client.query(countsLong).catch(() => undefined)
    await isAtWork
    server.signal('SIGKILL')
    await server.ended()
    expect(() => server.signal('SIGKILL')).toThrow('does not run')

    await server.start()
    await query
    expect(await valueOf(server.url(), 'SELECT 1 AS value')).toBe(1)
  })

  test('answers nobody new while it is paused, but sessions go on', async () => {
    await withClient(server.url(), async (client) => {
      server.pause()
      await expect(withClient(server.url(), () => Promise.resolve(), 100)).rejects.toThrow(/timeout/)
      expect((await client.query('SELECT 1 AS value')).rows).toEqual([{ value: 1 }])
    })
    server.resume()
    expect(await valueOf(server.url(), 'SELECT 1 AS value')).toBe(1)
  })

  test('leaves neither process nor data when it is disposed of, even paused', async () => {
    const data = await dataOf(server.url())
    expect(existsSync(data)).toBe(true)
    server.pause()
    await server.dispose()
    expect(existsSync(data)).toBe(false)
    await expect(valueOf(server.url(), 'SELECT 1')).rejects.toThrow('ECONNREFUSED')
  })
})

describe('a PostgreSQL that cannot start', () => {
  test('is an error that has what it printed', { timeout: START_MS }, async () => {
    await expect(startPostgres({ version: 18, settings: { shared_buffers: 'plenty' } })).rejects.toThrow(
      /ended before it was ready[^]*invalid value for parameter "shared_buffers": "plenty"/,
    )
  })
})

describe('a PostgreSQL whose test process is killed', () => {
  test('goes with it, and so does its data', { timeout: START_MS }, async () => {
    const script = `
      import { startPostgres } from './test/support/servers/postgres-server.ts'
      startPostgres({ version: 18 }).then((server) => console.log(server.url()))
      process.stdin.resume()
    `
    const parent = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
      cwd: root,
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const [line] = (await once(parent.stdout, 'data')) as [Buffer]
    const url = line.toString().trim()
    expect(url).toMatch(/^postgres:/)
    const data = await dataOf(url)
    parent.kill('SIGKILL')
    await eventually(() => expect(existsSync(data)).toBe(false))
    await expect(valueOf(url, 'SELECT 1')).rejects.toThrow('ECONNREFUSED')
  })
})
