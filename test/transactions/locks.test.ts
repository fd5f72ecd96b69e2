/** What an open transaction makes others wait for on PostgreSQL, and what it must not. */
import { holdfast } from 'holdfast'
import { Client, Pool } from 'pg'
import { postgresStore } from 'holdfast/postgres'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { withClient } from '../support/servers/client.ts'
import { freshDatabase, sharedPostgres, type Database } from '../support/servers/database.ts'
import { until } from '../support/until.ts'
import { deferred, thrownBy } from '../support/virtual.ts'

let database: Database
let client: Client
beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
}, 30_000)
afterAll(() => database.drop(), 30_000)
beforeEach(async () => {
  client = new Client({ connectionString: database.url })
  await client.connect()
  return () => client.end()
})

function open() {
  const gate = deferred()
  const started = deferred()
  const hf = holdfast({ store: database.url, logger: false })
  const gated = hf.job({
    name: 'gated',
    run: async () => {
      started.resolve()
      await gate.promise
      return 'done'
    },
  })
  const quick = hf.job({ name: 'quick', run: () => 'done' })
  return { hf, gated, quick, gate, started }
}

describe('a transaction that met a unique key and stays open', () => {
  test('does not hold up the job that holds the key, nor the rest of its worker', async () => {
    const { hf, gated, quick, gate, started } = open()
    await using _ = hf
    await using _worker = await hf.work()
    const unique = { key: 'unfinished' }
    const holder = await gated.enqueue(undefined, { unique })
    await started.promise
    await client.query('begin')
    const handles = [
      await gated.enqueue(undefined, { tx: client, unique }),
      await gated.enqueue(undefined, { tx: client, unique: { ...unique, onConflict: 'replace' } }),
    ]
    expect(handles).toMatchObject([
      { id: holder.id, outcome: 'duplicate' },
      { id: holder.id, outcome: 'duplicate' },
    ])
    gate.resolve()
    expect(await holder.result({ timeout: '10s' })).toBe('done')
    expect(await (await quick.enqueue()).result({ timeout: '10s' })).toBe('done')
    await client.query('rollback')
  })

  test('keeps a waiting job from being claimed where the claim frees the key, and only that', async () => {
    const { hf, gated, quick, gate } = open()
    await using _ = hf
    gate.resolve()
    const unique = { key: 'until claimed', while: 'ready' } as const
    const holder = await gated.enqueue(undefined, { unique })
    await client.query('begin')
    const met = await gated.enqueue(undefined, { tx: client, unique })
    expect(met).toMatchObject({ id: holder.id, outcome: 'duplicate' })
    await using _worker = await hf.work()
    // The run that the caller relies on has to see what the caller commits.
    expect(await (await quick.enqueue()).result({ timeout: '10s' })).toBe('done')
    expect(await holder.state()).toBe('ready')
    await client.query('commit')
    expect(await holder.result({ timeout: '10s' })).toBe('done')
  })

  test('that took the key makes others wait for its end, and they find what it left', async () => {
    const { hf, quick } = open()
    await using _ = hf
    await hf.queues()
    const unique = { key: 'taken' }
    await client.query('begin')
    const first = await quick.enqueue(undefined, { tx: client, unique, in: '1h' })
    const second = quick.enqueue(undefined, { unique })
    await waitsForLock(database)
    await client.query('commit')
    expect(await second).toMatchObject({ id: first.id, outcome: 'duplicate' })

    await client.query('begin')
    const third = await quick.enqueue(undefined, { tx: client, unique: { key: 'given back' } })
    const fourth = quick.enqueue(undefined, { unique: { key: 'given back' } })
    await waitsForLock(database)
    await client.query('rollback')
    expect(await fourth).toMatchObject({ outcome: 'inserted' })
    expect(await quick.get(third.id)).toBeNull()
  })
})

describe('a transaction at another level of isolation', () => {
  test('takes a key that was freed after it began', async () => {
    const { hf, quick } = open()
    await using _ = hf
    const unique = { key: 'freed' }
    const holder = await quick.enqueue(undefined, { unique })
    await client.query('begin isolation level repeatable read')
    await client.query('select 1')
    expect(await holder.cancel()).toBe('cancelled')
    const handle = await quick.enqueue(undefined, { tx: client, unique })
    await client.query('commit')
    expect(handle).toMatchObject({ outcome: 'inserted' })
    expect(await handle.state()).toBe('ready')
  })

  test.each(['repeatable read', 'serializable'])('%s: enqueues', async (level) => {
    const { hf, quick } = open()
    await using _ = hf
    await client.query(`begin isolation level ${level}`)
    const unique = { key: level }
    const [plain, keyed, again] = [
      await quick.enqueue(undefined, { tx: client }),
      await quick.enqueue(undefined, { tx: client, unique }),
      await quick.enqueue(undefined, { tx: client, unique }),
    ]
    await client.query('commit')
    expect([await plain.state(), await keyed.state()]).toEqual(['ready', 'ready'])
    expect(again).toMatchObject({ id: keyed.id, outcome: 'duplicate' })
  })
})

describe('the first enqueue of a program, in a transaction', () => {
  test('makes the tables while the transaction is open', async () => {
    const fresh = await freshDatabase(sharedPostgres(18))
    const hf = holdfast({ store: fresh.url, logger: false })
    const quick = hf.job({ name: 'quick', run: () => 'done' })
    const handle = await withClient(fresh.url, async (own) => {
      await own.query('begin isolation level serializable')
      await own.query('create table account (name text)')
      const enqueued = await quick.enqueue(undefined, { tx: own })
      await own.query('commit')
      return enqueued
    })
    expect(await handle.state()).toBe('ready')
    await hf.close()
    await fresh.drop()
  })

  test('needs no connection of the store once the store is open', async () => {
    const pool = new Pool({ connectionString: database.url, max: 1 })
    const hf = holdfast({ store: postgresStore({ pool }), logger: false })
    const quick = hf.job({ name: 'quick', run: () => 'done' })
    await hf.queues()
    const only = await pool.connect()
    await only.query('begin')
    const handle = await quick.enqueue(undefined, { tx: only })
    await only.query('commit')
    only.release()
    expect(await handle.state()).toBe('ready')
    await hf.close()
    await pool.end()
  })

  test('on a database without the tables fails as that database says', async () => {
    const { hf, quick } = open()
    await using _ = hf
    const elsewhere = await freshDatabase(sharedPostgres(18))
    await withClient(elsewhere.url, async (own) => {
      await own.query('begin')
      expect(await thrownBy(quick.enqueue(undefined, { tx: own }))).toMatchObject({
        code: '3F000',
        message: 'schema "holdfast" does not exist',
      })
      await own.query('rollback')
    })
    await elsewhere.drop()
  })
})

/** Resolves when a session waits for a lock. */
async function waitsForLock({ url }: Database): Promise<void> {
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  await withClient(url, (own) =>
    until('a session to wait for a lock', async () => (await own.query(waiting)).rows.length > 0),
  )
}
