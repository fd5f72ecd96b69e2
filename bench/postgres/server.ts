/** The PostgreSQL that all contenders share: durable, as one would run it, and a database of its own for each run. */
import { readdirSync } from 'node:fs'
import { dropDatabase, withClient } from '../../test/support/servers/client.ts'
import { startPostgres, type PostgresServer } from '../../test/support/servers/postgres-server.ts'
import { statOf, TICK_MICROS } from '../contest/proc.ts'
import type { ContestServer } from '../contest/server.ts'

export const SERVER_SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  checkpoint_timeout: '15min',
} as const

export interface DeadTuples {
  readonly table: string
  readonly dead: number
}

export interface SequentialScans {
  readonly table: string
  readonly scans: number
  /** Of the table, now. */
  readonly pages: number
}

export class PostgresBenchServer implements ContestServer {
  readonly version: string
  readonly #server: PostgresServer
  readonly #postmaster: number
  #databases = 0

  private constructor(server: PostgresServer, version: string, postmaster: number) {
    this.#server = server
    this.version = version
    this.#postmaster = postmaster
  }

  static async start(
    settings: Readonly<Record<string, string>> = SERVER_SETTINGS,
  ): Promise<PostgresBenchServer> {
    const server = await startPostgres({ version: 18, settings })
    try {
      const { rows } = await withClient(server.url(), (client) =>
        client.query<{ version: string; postmaster: number }>(
          `select current_setting('server_version') as version,
             split_part(pg_read_file('postmaster.pid'), e'\\n', 1)::integer as postmaster`,
        ),
      )
      const [row] = rows
      if (row === undefined) throw new Error('The server did not tell its version.')
      return new PostgresBenchServer(server, row.version, row.postmaster)
    } catch (error) {
      await server.dispose()
      throw error
    }
  }

  async createPlace(): Promise<string> {
    return this.#server.createDatabase(`bench_${++this.#databases}`)
  }

  async dropPlace(url: string): Promise<void> {
    await dropDatabase(this.#server.url(), new URL(url).pathname.slice(1))
  }

  /** Statistics for the planners, and nothing left to be written that was not caused by what is measured next. */
  async calmDown(url: string): Promise<void> {
    await withClient(url, async (client) => {
      await client.query('analyze')
      await client.query('checkpoint')
    })
  }

  /** Statistics alone, also of empty tables. */
  async analyze(url: string): Promise<void> {
    await withClient(url, (client) => client.query('analyze'))
  }

  async loggedBytes(): Promise<number> {
    const { rows } = await withClient(this.#server.url(), (client) =>
      client.query<{ bytes: string }>(`select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as bytes`),
    )
    return Number(rows[0]?.bytes)
  }

  /** Rows that are dead and not cleaned up, as the server counts them, table by table; the most first. */
  async deadTuples(url: string): Promise<readonly DeadTuples[]> {
    const { rows } = await withClient(url, (client) =>
      client.query<{ table: string; dead: string }>(
        `select schemaname || '.' || relname as table, n_dead_tup as dead from pg_stat_all_tables
         where n_dead_tup > 0 and schemaname not in ('pg_catalog', 'information_schema')
         order by n_dead_tup desc, relname`,
      ),
    )
    return rows.map(({ table, dead }) => ({ table, dead: Number(dead) }))
  }

  /** How often each table was read from end to end; the most first. */
  async sequentialScans(url: string): Promise<readonly SequentialScans[]> {
    const { rows } = await withClient(url, (client) =>
      client.query<{ table: string; scans: string; pages: string }>(
        `select schemaname || '.' || relname as table, seq_scan as scans,
           pg_relation_size(relid) / current_setting('block_size')::integer as pages
         from pg_stat_user_tables where seq_scan > 0 order by seq_scan desc, relname`,
      ),
    )
    return rows.map(({ table, scans, pages }) => ({ table, scans: Number(scans), pages: Number(pages) }))
  }

  /** Of all its processes, also those that have ended. */
  cpuMicros(): number {
    let ticks = 0
    for (const entry of readdirSync('/proc')) {
      if (!/^\d+$/.test(entry)) continue
      const stat = statOf(entry)
      if (stat === undefined) continue
      if (Number(entry) === this.#postmaster) ticks += stat.own + stat.ended
      else if (stat.parent === this.#postmaster) ticks += stat.own
    }
    return ticks * TICK_MICROS
  }

  dispose(): Promise<void> {
    return this.#server.dispose()
  }
}
