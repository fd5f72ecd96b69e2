/** The store on a PostgreSQL server, version 13 or newer: for fleets of workers on any number of machines. */
import { HoldfastError } from '../../errors.ts'
import { boolean, readersFor, readOptions } from '../../job/options.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import { Pulses } from '../pulse/pulse.ts'
import { warnOfNotice } from '../on-notice.ts'
import type { Store } from '../store.ts'
import { namesOf, NAMES_FIELDS, type NamesOptions } from './names.ts'
import type { LentPool } from './pg/lent-pool.ts'
import { CONNECTION_STRING, PG_FIELDS, type PgSource } from './pg/options.ts'
import { pgExecutor } from './pg/pg-executor.ts'
import { postgresThread } from './start-pulse.ts'
import { sqlStore } from './sql-store.ts'

export interface PostgresStoreOptions extends NamesOptions {
  /** `postgres://user:password@host:5432/database`, with anything that `pg` understands behind it. */
  readonly url?: string
  /**
   * Your own pool. Without a `url` as well there is neither LISTEN, so that new jobs are found by polling, nor a thread
   * that renews leases while the event loop is blocked.
   */
  readonly pool?: LentPool
  /**
   * Maximum number of connections for claims, settles, enqueues and everything else but handlers' transactions. A
   * process with workers has one more, which renews leases and listens. @default 2
   */
  readonly connections?: number
  /**
   * Maximum number of handlers that can have `commit()` open at a time in this process. Each takes one more connection,
   * which is closed soon after it is no longer needed; the next one waits. If you pass a `pool`, they come from that.
   * @default 5
   */
  readonly commitConnections?: number
  /** How long one statement may take, and how long to wait for a free connection, in ms. @default 30_000 */
  readonly queryTimeoutMs?: number
  /** Named prepared statements; 'auto' does without them behind a PgBouncer that cannot keep them. @default 'auto' */
  readonly prepare?: boolean | 'auto'
  /** Whether missing migrations are applied at the start; false for those who run the SQL themselves. @default true */
  readonly migrate?: boolean
  /** Called with one line about anything that does not work as well as it could. @default a process warning */
  readonly onNotice?: (line: string) => void
}

const FIELDS = readersFor<PostgresStoreOptions>()({
  url: CONNECTION_STRING,
  ...PG_FIELDS,
  migrate: boolean,
  ...NAMES_FIELDS,
})

export function postgresStore(options: PostgresStoreOptions): Store {
  const read = readOptions(options, 'postgresStore()', FIELDS)
  const { url, pool, schema: _schema, prefix: _prefix, migrate = true, ...settings } = read
  const { onNotice = warnOfNotice } = read
  const source = sourceOf(url, pool)
  const names = namesOf(read)
  const pulses = new Pulses({ thread: postgresThread(url ?? null, names), clock: systemClock, onNotice })
  const executor = pgExecutor({ ...settings, ...source, onNotice }, { thread: pulses })
  const store = sqlStore({
    executor,
    names,
    migrate,
    clock: systemClock,
    random: systemRandom,
    onNotice,
  })
  return {
    ...store,
    keepAlive: (worker, leaseMs) => pulses.keepAlive(worker, leaseMs),
    close: async () => {
      await Promise.all([pulses.close(), store.close()])
    },
  }
}

function sourceOf(url: string | undefined, pool: LentPool | undefined): PgSource {
  if (pool !== undefined) return { pool, connectionString: url }
  if (url !== undefined) return { connectionString: url }
  throw new HoldfastError('HF_BAD_OPTION', 'postgresStore() was given neither a `url` nor a `pool`.', {
    hint: "Pass postgresStore({ url: 'postgres://user:password@host:5432/database' }), or a `pool` of pg.",
  })
}
