/** Which handles of which libraries compile as `{ tx }`. Nothing here runs: `tsc` is the test. */
import type { PGlite, Transaction as PgliteTransaction } from '@electric-sql/pglite'
import type { PgTransaction } from 'drizzle-orm/pg-core'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import { holdfast, type EnqueueOptions, type RunContext, type Tx } from 'holdfast'
import type { Knex } from 'knex'
import type { ControlledTransaction, Kysely, Transaction as KyselyTransaction } from 'kysely'
import type { Client, Pool, PoolClient } from 'pg'
import type { ReservedSql, Sql, TransactionSql } from 'postgres'
import type { DataSource, EntityManager, QueryRunner } from 'typeorm'

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
  pglite: PgliteTransaction,
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
  const all: Tx[] = [pgClient, poolClient, pglite, sql, reserved, kysely, controlled, drizzle, knex, manager]
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
  pglite: PGlite,
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
  // @ts-expect-error a PGlite is none
  await job.enqueue(undefined, { tx: pglite })
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
