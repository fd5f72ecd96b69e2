import {
  fn,
  having,
  positive,
  readersFor,
  readOptions,
  refused,
  secret,
  string,
  whole,
} from '../../../job/options.ts'
import type { LentPool } from './lent-pool.ts'

export type PgExecutorOptions = PgSource & {
  /** Shown in pg_stat_activity. @default 'holdfast' */
  readonly applicationName?: string
  /** Number of our own connections for statements; unused with a lent pool. @default 2 */
  readonly connections?: number
  /** Number of further connections for handlers' transactions, also with a lent pool. @default 5 */
  readonly commitConnections?: number
  /** How long one statement may take, and how long to wait for a free connection. @default 30_000 */
  readonly queryTimeoutMs?: number
  /** Whether to prepare statements on the server; 'auto' finds out whether that works. @default 'auto' */
  readonly prepare?: boolean | 'auto'
  /** Called with one line about anything that does not work as well as it could. @default none */
  readonly onNotice?: (line: string) => void
}

export type PgSource =
  | { readonly connectionString: string; readonly pool?: undefined }
  /** If there is a connection string as well, a connection of our own LISTENs for wake-ups. */
  | { readonly pool: LentPool; readonly connectionString?: string | undefined }

export interface PgSettings {
  readonly connectionString: string | null
  readonly pool: LentPool | null
  readonly applicationName: string
  readonly connections: number
  readonly commitConnections: number
  readonly queryTimeoutMs: number
  readonly prepare: boolean | 'auto'
  readonly onNotice: (line: string) => void
}

/** What has the same name as an option of `postgresStore()`, which reads it first. */
export const PG_FIELDS = {
  pool: having<LentPool>('connect'),
  connections: whole(1),
  commitConnections: whole(1),
  queryTimeoutMs: positive,
  prepare: readPrepare,
  onNotice: fn<(line: string) => void>(),
}

export const CONNECTION_STRING = secret("a text such as 'postgres://user@host/database'")

const FIELDS = readersFor<PgExecutorOptions>()({
  ...PG_FIELDS,
  applicationName: string(63),
  connectionString: CONNECTION_STRING,
})

export function readPgOptions(options: PgExecutorOptions): PgSettings {
  const read = readOptions(options, 'pgExecutor()', FIELDS)
  return {
    connectionString: read.connectionString ?? null,
    pool: read.pool ?? null,
    applicationName: read.applicationName ?? 'holdfast',
    connections: read.connections ?? 2,
    commitConnections: read.commitConnections ?? 5,
    queryTimeoutMs: read.queryTimeoutMs ?? 30_000,
    prepare: read.prepare ?? 'auto',
    onNotice: read.onNotice ?? (() => undefined),
  }
}

function readPrepare(value: unknown, path: string): boolean | 'auto' {
  if (typeof value === 'boolean' || value === 'auto') return value
  throw refused(path, value, "true, false or 'auto'")
}
