/** Handles that are no open transaction, of the real libraries, are refused before anything is written to PostgreSQL. */
import { drizzle as drizzleOnPg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js'
import { holdfast } from 'holdfast'
import knexOf from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import { Client, Pool } from 'pg'
import postgres from 'postgres'
import { DataSource } from 'typeorm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../support/servers/database.ts'
import { thrownBy } from '../support/virtual.ts'

let database: Database
beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
}, 30_000)
afterAll(() => database.drop(), 30_000)

interface Outside {
  readonly handle: unknown
  readonly close: () => Promise<unknown>
}

const handles: readonly [name: string, says: string, make: () => Outside | Promise<Outside>][] = [
  [
    'a pool of pg',
    'a pool, which uses any of its connections',
    () => {
      const pool = new Pool({ connectionString: database.url })
      return { handle: pool, close: () => pool.end() }
    },
  ],
  [
    'a client of pg that has not begun',
    'no transaction is open',
    async () => {
      const client = await connected()
      return { handle: client, close: () => client.end() }
    },
  ],
  [
    'a client of pg that has committed',
    'no transaction is open',
    async () => {
      const client = await connected()
      await client.query('begin')
      await client.query('commit')
      return { handle: client, close: () => client.end() }
    },
  ],
  [
    'the sql of postgres.js',
    'the sql of postgres.js outside of a transaction',
    () => {
      const sql = postgres(database.url)
      return { handle: sql, close: () => sql.end() }
    },
  ],
  [
    'a Kysely',
    'a Kysely instance outside of a transaction',
    () => {
      const pool = new Pool({ connectionString: database.url })
      const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
      return { handle: db, close: () => db.destroy() }
    },
  ],
  [
    'a Drizzle on pg',
    'a Drizzle database outside of a transaction',
    () => {
      const db = drizzleOnPg(database.url)
      return { handle: db, close: () => db.$client.end() }
    },
  ],
  [
    'a Drizzle on postgres.js',
    'a Drizzle database outside of a transaction',
    () => {
      const db = drizzleOnPostgresJs(database.url)
      return { handle: db, close: () => db.$client.end() }
    },
  ],
  [
    'a Knex',
    'a Knex instance outside of a transaction',
    () => {
      const knex = knexOf({ client: 'pg', connection: database.url })
      return { handle: knex, close: () => knex.destroy() }
    },
  ],
  ['a DataSource of TypeORM', 'in no transaction', () => typeOrm((source) => source)],
  ['the entity manager of a DataSource', 'in no transaction', () => typeOrm((source) => source.manager)],
  [
    'a query runner that has not begun',
    'in no transaction',
    () => typeOrm((source) => source.createQueryRunner()),
  ],
  [
    'a PrismaClient, by shape',
    'a PrismaClient outside of a transaction',
    () => ({
      handle: { $queryRawUnsafe: () => undefined, $connect: () => undefined, $transaction: () => undefined },
      close: () => Promise.resolve(),
    }),
  ],
]

async function connected(): Promise<Client> {
  const client = new Client({ connectionString: database.url })
  await client.connect()
  return client
}

async function typeOrm(handleOf: (source: DataSource) => unknown): Promise<Outside> {
  const source = await new DataSource({ type: 'postgres', url: database.url }).initialize()
  return { handle: handleOf(source), close: () => source.destroy() }
}

describe('what is no open transaction is refused', () => {
  test.each(handles)('%s', async (_name, says, make) => {
    const hf = holdfast({ store: database.url, logger: false })
    const job = hf.job({ name: 'note', run: () => undefined })
    const { handle, close } = await make()
    try {
      const refusal = await thrownBy(job.enqueue(undefined, { tx: handle as never }))
      expect(refusal).toMatchObject({
        code: 'HF_BAD_OPTION',
        message: expect.stringContaining(says),
        hint: expect.stringMatching(/pass/),
      })
      expect(await hf.queues()).toMatchObject([{ queue: 'default', counts: { ready: 0 } }])
    } finally {
      await close()
      await hf.close()
    }
  })

  test.each([
    ['nothing', null],
    ['a text', 'begin'],
    ['an object that can do nothing', {}],
    ['a function', () => undefined],
    ['an ORM that is not known', { execute: () => undefined, raw: () => undefined }],
  ])('%s', async (_name, handle) => {
    const hf = holdfast({ store: database.url, logger: false })
    const job = hf.job({ name: 'note', run: () => undefined })
    expect(await thrownBy(job.enqueue(undefined, { tx: handle as never }))).toMatchObject({
      code: 'HF_BAD_OPTION',
      message: '{ tx } is not a transaction that Holdfast knows.',
      hint: expect.stringContaining('postgres.js, Kysely, Drizzle, Prisma, Knex or TypeORM'),
    })
    await hf.close()
  })

  test('a Knex transaction that is over says so itself', async () => {
    const hf = holdfast({ store: database.url, logger: false })
    const job = hf.job({ name: 'note', run: () => undefined })
    const knex = knexOf({ client: 'pg', connection: database.url })
    const trx = await knex.transaction()
    await trx.commit()
    expect(await thrownBy(job.enqueue(undefined, { tx: trx }))).toMatchObject({
      message: expect.stringContaining('Transaction query already complete'),
    })
    await knex.destroy()
    await hf.close()
  })
})
