/** The PostgreSQL that all contenders share: durable, as one would run it, and a database of its own for each run. */
import { readdirSync, readFileSync } from 'node:fs'
import { dropDatabase, withClient } from '../../test/support/servers/client.ts'
import { startPostgres, type PostgresServer } from '../../test/support/servers/postgres-server.ts'

export const SERVER_SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  checkpoint_timeout: '15min',
} as const

/** USER_HZ, which Linux has fixed for programs. */
const TICK_MICROS = 10_000

export class BenchServer {
  readonly version: string
  readonly #server: PostgresServer
  readonly #postmaster: number
  #databases = 0

  private constructor(server: PostgresServer, version: string, postmaster: number) {
    this.#server = server
    this.version = version
    this.#postmaster = postmaster
  }

  static async start(): Promise<BenchServer> {
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
      return new BenchServer(server, row.version, row.postmaster)
    } catch (error) {
      await server.dispose()
      throw error
    }
  }

  async createDatabase(): Promise<string> {
    return this.#server.createDatabase(`bench_${++this.#databases}`)
  }

  async dropDatabase(url: string): Promise<void> {
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

interface Stat {
  readonly parent: number
  readonly own: number
  /** Of children that have ended. */
  readonly ended: number
}

/** Undefined where the process has just ended. See proc_pid_stat(5). */
function statOf(pid: string): Stat | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // The name stands in parentheses and may have spaces; the state behind it is field 3.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const field = (number: number): number => Number(fields[number - 3])
  return { parent: field(4), own: field(14) + field(15), ended: field(16) + field(17) }
}
