import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { withClient } from './client.ts'
import { freshDatabase, sharedPostgres, type Database, postgresVersions } from './database.ts'

describe.each(postgresVersions())('the shared PostgreSQL %i', (version) => {
  async function fresh(): Promise<Database> {
    const database = await freshDatabase(sharedPostgres(version))
    onTestFinished(() => database.drop())
    return database
  }

  test('is of that version', async () => {
    const { rows } = await withClient(sharedPostgres(version), (client) =>
      client.query<{ server_version: string }>('SHOW server_version'),
    )
    expect(rows[0]?.server_version).toMatch(new RegExp(`^${version}\\.`))
  })

  test('has a database for each who asks, and they do not see each other', async () => {
    const [one, other] = await Promise.all([fresh(), fresh()])
    await withClient(one.url, (client) => client.query('CREATE TABLE t ()'))
    await withClient(other.url, (client) => client.query('CREATE TABLE t ()'))
    expect(one.url).not.toBe(other.url)
  })

  test('drops a database although somebody is connected, and only once', async () => {
    const database = await freshDatabase(sharedPostgres(version))
    const client = new Client(database.url)
    client.on('error', () => undefined)
    await client.connect()
    await database.drop()
    await database.drop()
    await expect(client.query('SELECT 1')).rejects.toThrow()
    await expect(withClient(database.url, () => Promise.resolve())).rejects.toThrow('does not exist')
    await client.end().catch(() => undefined)
  })
})
