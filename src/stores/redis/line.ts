/**
 * One connection to Redis, opened on demand and reopened after it was lost, with a pause that grows while the server is
 * down. ioredis neither reconnects nor queues here. It would send a claim again, or hold it until long after its worker
 * gave up, and no worker would run the jobs it leases.
 */
import { jittered, nextPause, type Backoff } from '../../std/backoff.ts'
import { sleep, type Clock } from '../../std/clock.ts'
import { withDeadline } from '../../std/deadline.ts'
import type { Random } from '../../std/random.ts'
import type { ClientOptions, RedisClient, RedisModule } from './driver.ts'
import { closed, unreachable } from './server-errors.ts'

export interface LineParts {
  readonly load: () => Promise<RedisModule>
  readonly url: string | null
  /** Called again for each connection if it is a function. */
  readonly connection: ClientOptions | (() => ClientOptions)
  /** Selected on each connection before it is used. */
  readonly db: number
  readonly clock: Clock
  readonly random: Random
  /** Called with each new client before it connects. */
  readonly onClient?: (client: RedisClient) => void
}

/** Timeout of one connection attempt: a worker must be able to try again before it counts as late (5 s). */
const CONNECT_MS = 3_000
const GOODBYE_MS = 1_000
const BACKOFF: Backoff = { firstMs: 50, longestMs: 2_000 }

/** Our own settings, which override the caller's. */
export const FIXED: ClientOptions = {
  lazyConnect: true,
  retryStrategy: null,
  enableOfflineQueue: false,
  enableReadyCheck: false,
  autoResubscribe: false,
  disableClientInfo: true,
  connectTimeout: CONNECT_MS,
  // A peer that vanished is noticed although nothing is sent.
  keepAlive: 10_000,
  // Under version 2, replies of scripts have one shape.
  protocol: 2,
  // The line selects its database itself, see #enter.
  db: 0,
}

export class Line {
  readonly #parts: LineParts
  readonly #closing = new AbortController()
  #client: RedisClient | undefined
  #connecting: Promise<RedisClient> | undefined
  #pauseMs = 0
  #notBeforeMs = -Infinity

  constructor(parts: LineParts) {
    this.#parts = parts
  }

  /** Rejects if there is no connection now; the next call tries again. */
  client(): Promise<RedisClient> {
    if (this.#closing.signal.aborted) return Promise.reject(closed())
    if (this.#client?.status === 'ready') return Promise.resolve(this.#client)
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined
    })
    return this.#connecting
  }

  /** Another line to the same server. */
  twin(): Line {
    return new Line(this.#parts)
  }

  /** The connection does not answer or can no longer be used: its pending calls fail. */
  drop(client: RedisClient): void {
    if (this.#client === client) this.#client = undefined
    cut(client)
  }

  /** Closes it with QUIT first, then by force. Safe to call again. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(closed())
    const client = this.#client
    if (client === undefined) return
    client.stream?.ref?.()
    await withDeadline(this.#parts.clock, GOODBYE_MS, client.quit(), closed).catch(() => undefined)
    this.drop(client)
  }

  async #connect(): Promise<RedisClient> {
    const { clock, random, load } = this.#parts
    const waitMs = this.#notBeforeMs - clock.monotonicMs()
    if (waitMs > 0) await sleep(clock, waitMs, this.#closing.signal)
    const triedMs = clock.monotonicMs()
    const client = this.#create(await load())
    let why: Error | undefined
    // For the connection's whole life: an `error` without a listener is printed. Only the first one is informative.
    client.on('error', (error) => (why ??= error))
    client.on('end', () => {
      if (this.#client === client) this.#client = undefined
    })
    this.#parts.onClient?.(client)
    try {
      const late = (): Error =>
        unreachable(`Redis did not accept a connection within ${CONNECT_MS / 1000} s.`)
      await withDeadline(clock, CONNECT_MS, this.#unlessClosed(this.#enter(client)), late)
    } catch (error) {
      cut(client)
      this.#pauseMs = nextPause(BACKOFF, this.#pauseMs)
      // Counted from when the try began: one that hung until its deadline was pause enough.
      this.#notBeforeMs = triedMs + jittered(this.#pauseMs, random.float())
      throw why ?? error
    }
    this.#pauseMs = 0
    this.#client = client
    return client
  }

  /** Asks for the database itself: ioredis would continue in database 0 if the server refuses. */
  async #enter(client: RedisClient): Promise<void> {
    const { db } = this.#parts
    await client.connect()
    if (db !== 0) await client.call('SELECT', [db])
  }

  /** A close does not wait for a connection that is on its way. */
  #unlessClosed(work: Promise<unknown>): Promise<unknown> {
    const { signal } = this.#closing
    return new Promise((resolve, reject) => {
      const abort = (): void => reject(closed())
      signal.addEventListener('abort', abort)
      void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
      if (signal.aborted) abort()
    })
  }

  #create({ Redis }: RedisModule): RedisClient {
    const { url, connection } = this.#parts
    const options = { ...(typeof connection === 'function' ? connection() : connection), ...FIXED }
    return url === null ? new Redis(options) : new Redis(url, options)
  }
}

/**
 * Closes it at once: ioredis alone would first wait two seconds for the other end to close, which may be gone, and all
 * pending calls would wait with it.
 */
function cut(client: RedisClient): void {
  const { stream } = client
  if (stream?.destroyed === true) return
  client.disconnect()
  stream?.destroy?.()
}
