/** Which handles of which libraries compile as `{ tx }`. Nothing here runs: `tsc` is the test. */
import type { PgTransaction } from 'drizzle-orm/pg-core'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import type BetterSqlite from 'better-sqlite3'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3'
import { holdfast, type EnqueueOptions, type RunContext, type SqliteTx, type Tx } from 'holdfast'
import type { Knex } from 'knex'
import type { ControlledTransaction, Kysely, Transaction as KyselyTransaction } from 'kysely'
import type { Client, Pool, PoolClient } from 'pg'
import type { ReservedSql, Sql, TransactionSql } from 'postgres'
import type { DataSource, EntityManager, QueryRunner } from 'typeorm'
import { z } from 'zod'

const hf = holdfast({ store: 'postgres://localhost/db', queues: { default: {}, mail: {} } })
const job = hf.job({ name: 'note', run: () => 1 })

interface Tables {
  account: { id: number }
}
/** As `prisma generate` writes them, as far as it matters here. */
interface PrismaTransaction {
  $queryRawUnsafe<T = unknown>(query: string, ...values: unknown[]): Promise<T>
  account: object
}
interface PrismaClient extends PrismaTransaction {
  $connect(): Promise<void>
}

export async function fits(
  pgClient: Client,
  poolClient: PoolClient,
  sql: TransactionSql,
  reserved: ReservedSql,
  kysely: KyselyTransaction<Tables>,
  controlled: ControlledTransaction<Tables>,
  drizzle: PgTransaction<never>,
  knex: Knex.Transaction,
  manager: EntityManager,
  runner: QueryRunner,
  prisma: PrismaTransaction,
): Promise<void> {
  const all: Tx[] = [pgClient, poolClient, sql, reserved, kysely, controlled, drizzle, knex, manager]
  const more: Tx[] = [runner, prisma]
  for (const tx of [...all, ...more]) {
    await job.enqueue(undefined, { tx, priority: 'high', queue: 'mail' })
    await job.enqueueMany([undefined], { tx })
    await hf.enqueueMany([job.with()], { tx })
    await hf.queue('mail').send('x', { tx })
  }
}

/** Many of us pass on what they may have been given. */
export async function passesOn(tx?: Tx): Promise<void> {
  const options: EnqueueOptions<'mail'> = { tx, queue: 'mail' }
  await job.enqueue(undefined, options)
}

export async function mistakes(
  pool: Pool,
  sql: Sql,
  kysely: Kysely<Tables>,
  drizzle: NodePgDatabase,
  knex: Knex,
  source: DataSource,
  prisma: PrismaClient,
  context: RunContext<unknown, object>,
): Promise<void> {
  // @ts-expect-error a pool is no transaction
  await job.enqueue(undefined, { tx: pool })
  // @ts-expect-error the sql of postgres.js is none
  await job.enqueue(undefined, { tx: sql })
  // @ts-expect-error a Kysely is none
  await job.enqueue(undefined, { tx: kysely })
  // @ts-expect-error a Drizzle database is none
  await job.enqueue(undefined, { tx: drizzle })
  // @ts-expect-error a Knex is none
  await job.enqueue(undefined, { tx: knex })
  // @ts-expect-error a DataSource is none
  await job.enqueue(undefined, { tx: source })
  // @ts-expect-error a PrismaClient is none
  await job.enqueue(undefined, { tx: prisma })
  // @ts-expect-error nor is a connection string
  await job.enqueue(undefined, { tx: 'postgres://localhost/db' })
  // @ts-expect-error nor what a handler gets
  await job.enqueue(undefined, { tx: context })
  // @ts-expect-error jobs that are enqueued together are in one transaction
  job.with(undefined, { tx: pool })
}

type SqliteDrizzle = Parameters<Parameters<BetterSQLite3Database['transaction']>[0]>[0]

export async function fitsSqlite(
  better: BetterSqlite.Database,
  databaseSync: DatabaseSyncInstance,
  drizzle: SqliteDrizzle,
  kysely: KyselyTransaction<Tables>,
  context: RunContext<unknown, object>,
): Promise<void> {
  const all: SqliteTx[] = [better, databaseSync, drizzle]
  for (const tx of all) {
    await job.enqueue(undefined, { tx, priority: 'high' })
    const { id } = job.enqueueSync(undefined, { tx, queue: 'mail' })
    await job.get(id)
  }
  const input = hf.job({ name: 'input', input: z.object({ who: z.string() }), run: () => 1 })
  const result: Promise<number> = input.enqueueSync({ who: 'ada' }, { tx: better }).result()
  await result
  await context.commit(async (tx: BetterSqlite.Database) => tx.prepare('select 1').get())
  await context.commit(async (tx) => tx.query('select 1'))
  // @ts-expect-error a transaction of Kysely is asynchronous
  job.enqueueSync(undefined, { tx: kysely })
  // @ts-expect-error it is for transactions only
  job.enqueueSync(undefined, {})
  // @ts-expect-error nor is there one by default
  job.enqueueSync()
  // @ts-expect-error the input is checked as ever
  input.enqueueSync({ who: 1 }, { tx: better })
}

export async function sqliteMistakes(drizzle: BetterSQLite3Database): Promise<void> {
  // @ts-expect-error a Drizzle database is no transaction
  await job.enqueue(undefined, { tx: drizzle })
}
