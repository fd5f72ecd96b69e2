/** The way to the database, as the store uses it. It is in `pg/`. */
import type { PgExecutor } from './pg/pg-executor.ts'

export type Executor = Pick<PgExecutor, keyof PgExecutor>

export type { Listening } from './pg/listener.ts'
export type { Queryable, SqlValue, Statement } from './pg/statement.ts'
