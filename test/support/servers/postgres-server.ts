/**
 * A real PostgreSQL of one's own: a fresh cluster on a port of this machine, that can be stopped hard, started again on
 * the same data, and frozen. Tests that only need a database use the shared servers, see `database.ts`.
 */
import { join } from 'node:path'
import { postgresBinaries, type Binaries, type PostgresVersion } from './binaries.ts'
import { createDatabase, withClient } from './client.ts'
import { freePort } from './port.ts'
import { ServerProcess } from './server-process.ts'

export interface PostgresOptions {
  readonly version: PostgresVersion
  /** As in postgresql.conf: `{ fsync: 'off' }`. */
  readonly settings?: Readonly<Record<string, string>>
}

/**
 * fast: sessions are ended, their transactions rolled back, and all is written (SIGINT). immediate: everything stops
 * where it is, and the next start recovers from the log, as after a crash (SIGQUIT).
 */
export type StopMode = 'fast' | 'immediate'

const STOP_SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const
const START_MS = 30_000
const ANSWER_MS = 5_000

export async function startPostgres({ version, settings = {} }: PostgresOptions): Promise<PostgresServer> {
  const process = await ServerProcess.prepare(`postgres-${version}`)
  try {
    const binaries = await postgresBinaries(version, process.folder, process.account)
    const port = await freePort()
    const options = ['-U', 'postgres', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale=C']
    await process.run(binaries.initdb, ['-D', dataFolder(process), ...options])
    const server = new PostgresServer(process, binaries, settings, port)
    await server.start()
    return server
  } catch (error) {
    await process.dispose()
    throw error
  }
}

export class PostgresServer {
  readonly #process: ServerProcess
  readonly #binaries: Binaries
  readonly #settings: Readonly<Record<string, string>>
  #port: number
  #hasStarted = false

  constructor(
    process: ServerProcess,
    binaries: Binaries,
    settings: Readonly<Record<string, string>>,
    port: number,
  ) {
    this.#process = process
    this.#binaries = binaries
    this.#settings = settings
    this.#port = port
  }

  /** The same for the server's whole life. */
  get port(): number {
    return this.#port
  }

  get running(): boolean {
    return this.#process.running
  }

  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.#port}/${encodeURIComponent(database)}`
  }

  createDatabase(name: string): Promise<string> {
    return createDatabase(this.url(), name)
  }

  /** Resolves when a client was answered. Rejects with what the server printed if it ends before. */
  async start(): Promise<void> {
    const deadline = performance.now() + START_MS
    for (;;) {
      this.#process.spawn(this.#binaries.postgres, this.#arguments())
      try {
        await this.#process.ready(() => this.#answers(), deadline - performance.now())
        this.#hasStarted = true
        return
      } catch (error) {
        if (this.#process.running || performance.now() > deadline || !this.#mayPass()) throw error
      }
      if (!this.#hasStarted) this.#port = await freePort()
    }
  }

  async stop(mode: StopMode = 'fast'): Promise<void> {
    await this.#process.stop(STOP_SIGNALS[mode])
  }

  async restart(mode: StopMode = 'fast'): Promise<void> {
    await this.stop(mode)
    await this.start()
  }

  /** To the postmaster only, whose children follow it into its end. */
  signal(signal: NodeJS.Signals): void {
    this.#process.signal(signal)
  }

  /** After a deadly signal. */
  ended(): Promise<void> {
    return this.#process.ended()
  }

  /**
   * Freezes the postmaster: new connections are taken by the kernel and never answered, while sessions that exist go
   * on. For sessions that hang, see `tcp-proxy.ts`.
   */
  pause(): void {
    this.signal('SIGSTOP')
  }

  resume(): void {
    this.signal('SIGCONT')
  }

  /** What the server printed since its last start. */
  log(): string {
    return this.#process.log()
  }

  /** Stops it at once and removes its data. Safe to call again. */
  dispose(): Promise<void> {
    return this.#process.dispose()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  #arguments(): string[] {
    const settings = Object.entries({ ...this.#settings, cluster_name: this.#name })
    const options = ['-D', dataFolder(this.#process), '-h', '127.0.0.1', '-p', String(this.#port), '-k', '']
    return options.concat(settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]))
  }

  get #name(): string {
    return `holdfast-${this.#process.folder.slice(-6)}`
  }

  /** The name tells that this is our server, and not another that was faster to take the port. */
  async #answers(): Promise<boolean> {
    try {
      const { rows } = await withClient(
        this.url(),
        (client) => client.query<{ name: string }>(`SELECT current_setting('cluster_name') AS name`),
        ANSWER_MS,
      )
      return rows[0]?.name === this.#name
    } catch {
      return false
    }
  }

  /** The port is taken, or sessions of a postmaster that was killed are still about to notice it. */
  #mayPass(): boolean {
    return /Address already in use|pre-existing shared memory block|lock file ".*" already exists/.test(
      this.log(),
    )
  }
}

function dataFolder(process: ServerProcess): string {
  return join(process.folder, 'data')
}
