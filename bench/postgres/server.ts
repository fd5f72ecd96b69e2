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

  static async start(): Promise<PostgresBenchServer> {
    const server = await startPostgres({ version: 18, settings: SERVER_SETTINGS })
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
