/** The store on a PostgreSQL server, version 13 or newer: for fleets of workers on any number of machines. */
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import { Pulses } from '../pulse/pulse.ts'
import type { Store } from '../store.ts'
import { readNames, type NamesOptions } from './names.ts'
import type { LentPool } from './pg/lent-pool.ts'
import { pgExecutor } from './pg/pg-executor.ts'
import { postgresThread } from './pulse/start-pulse.ts'
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
  /** Told in one line what does not work as well as it could. @default a warning of the process */
  readonly onNotice?: (line: string) => void
}

export function postgresStore(options: PostgresStoreOptions): Store {
  const { url, pool, connections, commitConnections, queryTimeoutMs, prepare, migrate = true } = options
  const names = readNames(options)
  const onNotice = options.onNotice ?? ((line: string) => process.emitWarning(line, 'HoldfastWarning'))
  const settings = {
    ...(connections === undefined ? {} : { connections }),
    ...(commitConnections === undefined ? {} : { commitConnections }),
    ...(queryTimeoutMs === undefined ? {} : { queryTimeoutMs }),
    ...(prepare === undefined ? {} : { prepare }),
    onNotice,
  }
  const pulses = new Pulses({ thread: postgresThread(url ?? null, names), clock: systemClock, onNotice })
  const source = pool === undefined ? { connectionString: url ?? '' } : { pool, connectionString: url }
  const executor = pgExecutor({ ...settings, ...source }, { thread: pulses })
  const store = sqlStore({
    executor,
    names,
    migrate,
    clock: systemClock,
    random: systemRandom,
  })
  return {
    ...store,
    keepAlive: (worker, leaseMs) => pulses.keepAlive(worker, leaseMs),
    close: async () => {
      await Promise.all([pulses.close(), store.close()])
    },
  }
}
