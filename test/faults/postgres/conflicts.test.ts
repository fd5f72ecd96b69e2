/** Many want the same rows at once: what the server then undoes is done again, and nobody hears of it. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { withClient } from '../../support/servers/client.ts'
import { freshDatabase, sharedPostgres, type Database } from '../../support/servers/database.ts'
import { startFleet, type Fleet } from './support/fleet.ts'

let database: Database
let fleet: Fleet | undefined

beforeEach(async () => {
  database = await freshDatabase(sharedPostgres(18))
})

afterEach(async () => {
  await fleet?.close()
  fleet = undefined
  await database.drop()
})

async function start(settings: readonly string[]): Promise<Fleet> {
  const name = new URL(database.url).pathname.slice(1)
  for (const setting of settings) await run(`alter database ${name} set ${setting}`)
  fleet = await startFleet({ url: database.url, lineUrl: database.url })
  return fleet
}

async function run<Row extends object>(sql: string): Promise<Row[]> {
  return (await withClient(database.url, (client) => client.query<Row>(sql))).rows
}

async function deadlocks(): Promise<number> {
  const [row] = await run<{ n: number }>(
    'select deadlocks::int as n from pg_stat_database where datname = current_database()',
  )
  return row?.n ?? 0
}

const KEYS = Array.from({ length: 20 }, (_, index) => `crossed-${index}`)

/** Enqueues and cancels of the same keys, each in an order of its own. */
async function crossKeys(running: Fleet, rounds: number): Promise<void> {
  await Promise.all(
    running.clients.map(async (client) => {
      for (let round = 0; round < rounds; round++) {
        const ids = await client.enqueueKeyed(KEYS)
        await Promise.all([client.cancelAll(ids), client.enqueueKeyed(KEYS)])
      }
    }),
  )
}

describe('deadlocks', () => {
  test('are got over, and nobody sees one', async ({ annotate }) => {
    const running = await start([`deadlock_timeout = '20ms'`])
    const before = await deadlocks()
    for (let tries = 0; tries < 10 && (await deadlocks()) < before + 5; tries++) await crossKeys(running, 5)
    const met = (await deadlocks()) - before
    await annotate(`${met} deadlocks`)
    console.log(met)
    expect(met).toBeGreaterThan(0)
    await running.judge()
    expect(running.clients.flatMap((client) => client.failures)).toEqual([])
  })
})

describe('a default isolation level of the database', () => {
  test.for(['read committed', 'repeatable read', 'serializable'])('makes no difference: %s', async (level) => {
    const running = await start([
      `deadlock_timeout = '20ms'`,
      `default_transaction_isolation = '${level}'`,
    ])
    for (let round = 0; round < 20; round++) {
      await Promise.all(running.clients.map((client) => client.pauseAndResume()))
      await running.progress(5)
    }
    await crossKeys(running, 3)
    await running.judge()
    expect(running.clients.flatMap((client) => client.failures)).toEqual([])
  })
})
