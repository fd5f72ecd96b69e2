/**
 * A real Redis of one's own: on a port of this machine and in a folder of its own, that can be stopped hard and started
 * again on the same data. Tests that only need a Redis use the shared one, see `redis.ts`.
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
/** Neither snapshots nor an append-only file unless told, and no password: it listens on the loopback only. */
const DEFAULTS = { bind: '127.0.0.1', save: '', appendonly: 'no', 'protected-mode': 'no' }

/** Rejects where there is no redis-server: ask `redisMissing` of `redis.ts` first. */
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

  /** Hard: nothing is written any more, as when the machine's power goes but for what the system has. */
  async kill(): Promise<void> {
    await this.#process.stop('SIGKILL')
  }

  /** Stops it at once and removes its data. Safe to call again. */
  async dispose(): Promise<void> {
    // It takes SIGQUIT for a crash of its own, and writes pages about it.
    if (this.#process.running) await this.kill()
    await this.#process.dispose()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  /** By a command of its own, so that the driver is not in question. */
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
