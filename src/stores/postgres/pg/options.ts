import { HoldfastError } from '../../../errors.ts'
import type { LentPool } from './lent-pool.ts'

export type PgExecutorOptions = PgSource & {
  /** Shown in pg_stat_activity. @default 'holdfast' */
  readonly applicationName?: string
  /** How many connections of our own for statements; not for a lent pool. @default 2 */
  readonly connections?: number
  /** How many more for handlers' transactions; of a lent pool, how many they may have at a time. @default 5 */
  readonly commitConnections?: number
  /** How long one statement may take, and how long to wait for a free connection. @default 30_000 */
  readonly queryTimeoutMs?: number
  /** Whether statements are kept prepared on the server; 'auto' finds out whether that works. @default 'auto' */
  readonly prepare?: boolean | 'auto'
  /** Called once, with a line for people, about anything that does not work as well as it could. @default none */
  readonly onNotice?: (line: string) => void
}

type PgSource =
  | { readonly connectionString: string; readonly pool?: undefined }
  /** With a connection string as well, wake-ups come by LISTEN on a connection of our own. */
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

export function readPgOptions(options: PgExecutorOptions): PgSettings {
  const settings: PgSettings = {
    connectionString: options.connectionString ?? null,
    pool: options.pool ?? null,
    applicationName: options.applicationName ?? 'holdfast',
    connections: options.connections ?? 2,
    commitConnections: options.commitConnections ?? 5,
    queryTimeoutMs: options.queryTimeoutMs ?? 30_000,
    prepare: options.prepare ?? 'auto',
    onNotice: options.onNotice ?? (() => undefined),
  }
  if (settings.pool === null && !settings.connectionString) {
    throw bad('connectionString', settings.connectionString, "a text such as 'postgres://user@host/database'")
  }
  if (settings.pool !== null && typeof settings.pool.connect !== 'function') {
    throw bad('pool', typeof settings.pool, 'a pool of pg, which has connect()')
  }
  for (const option of ['connections', 'commitConnections'] as const) {
    const value = settings[option]
    if (!Number.isInteger(value) || value < 1) throw bad(option, value, 'a whole number from 1')
  }
  if (!Number.isFinite(settings.queryTimeoutMs) || settings.queryTimeoutMs <= 0) {
    throw bad('queryTimeoutMs', settings.queryTimeoutMs, 'a number of milliseconds above 0')
  }
  return settings
}

function bad(option: string, value: unknown, accepted: string): HoldfastError {
  return new HoldfastError(
    'HF_BAD_OPTION',
    `The option ${option} of the PostgreSQL store cannot be ${JSON.stringify(value)}.`,
    { hint: `Use ${accepted}.` },
  )
}
