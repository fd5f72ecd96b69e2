/**
 * A Redis for one test, on its own port and in its own folder, that can be killed and started again on the same data. Tests
 * that only need some Redis use the shared one, see `redis.ts`.
 */
import { connect } from 'node:net'
import { findRedis } from './redis-binary.ts'
import { freePort } from './port.ts'
import { ServerProcess } from './server-process.ts'

export interface RedisServerOptions {
  /** As in redis.conf: `{ maxmemory: '8mb' }`. */
  readonly settings?: Readonly<Record<string, string>>
}

const START_MS = 10_000
const ANSWER_MS = 2_000
/** By default no snapshots, no append-only file and no password. It listens on the loopback interface only. */
const DEFAULTS = { bind: '127.0.0.1', save: '', appendonly: 'no', 'protected-mode': 'no' }

/** Rejects if there is no redis-server: check `redisMissing` of `redis.ts` first. */
export async function startRedis({ settings = {} }: RedisServerOptions = {}): Promise<RedisServer> {
  const binary = findRedis()
  if (binary === undefined) throw new Error('There is no redis-server here.')
  const process = await ServerProcess.prepare('redis')
  try {
    for (let tries = 1; ; tries++) {
      const server = new RedisServer(process, binary, settings, await freePort())
      try {
        await server.start()
        return server
      } catch (error) {
        if (tries === 3 || !/in use/i.test(process.log())) throw error
      }
    }
  } catch (error) {
    await process.dispose()
    throw error
  }
}

export class RedisServer {
  readonly port: number
  readonly #process: ServerProcess
  readonly #binary: string
  readonly #settings: Readonly<Record<string, string>>

  constructor(
    process: ServerProcess,
    binary: string,
    settings: Readonly<Record<string, string>>,
    port: number,
  ) {
    this.#process = process
    this.#binary = binary
    this.#settings = settings
    this.port = port
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  async start(): Promise<void> {
    const settings = Object.entries({
      ...DEFAULTS,
      ...this.#settings,
      port: String(this.port),
      dir: this.#process.folder,
    })
    this.#process.spawn(
      this.#binary,
      settings.flatMap(([name, value]) => [`--${name}`, value]),
    )
    await this.#process.ready(() => this.#answers(), START_MS)
  }

  /** Kills the process. Writes that reached the operating system survive. */
  async kill(): Promise<void> {
    await this.#process.stop('SIGKILL')
  }

  /** Stops it at once and removes its data. Safe to call again. */
  async dispose(): Promise<void> {
    // On SIGQUIT, Redis would print a crash report.
    if (this.#process.running) await this.kill()
    await this.#process.dispose()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  /** Sends a raw PING, so that it does not depend on the driver. */
  #answers(): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect({ port: this.port, host: '127.0.0.1', timeout: ANSWER_MS })
      const done = (answer: boolean): void => {
        socket.destroy()
        resolve(answer)
      }
      socket.on('error', () => done(false))
      socket.on('timeout', () => done(false))
      socket.on('data', (data) => done(/PONG|NOAUTH/.test(String(data))))
      socket.write('PING\r\n')
    })
  }
}
