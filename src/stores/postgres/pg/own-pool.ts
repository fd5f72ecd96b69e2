/**
 * A few connections of our own. take() returns one that works: idle ones are checked first, old ones are replaced, and
 * waiting for a free one has a timeout.
 *
 * A statement may take half a minute, and one on a dead connection takes as long to fail; a worker should recover
 * sooner. So a statement that is not done after a moment keeps running, but yields its place in the pool.
 */
import { setMaxListeners } from 'node:events'
import { HoldfastError } from '../../../errors.ts'
import type { Clock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import { formatDuration } from '../../../std/duration.ts'
import type { Random } from '../../../std/random.ts'
import { toError } from '../../../std/text.ts'
import { Permits } from '../permits.ts'
import { cancelRunning } from './cancel.ts'
import { cut, unreachable } from './driver.ts'
import type { Connector, OwnClient } from './driver.ts'
import { PgConnection } from './connection.ts'

/** Where connections come from and go back to. */
export interface ConnectionPool {
  /** Waits for a free one, at most `waitMs`. */
  take(waitMs?: number): Promise<PgConnection>
  give(connection: PgConnection): void
  /** Waits a moment for those in use, then cuts them off. */
  close(): Promise<void>
}

interface Idle {
  readonly connection: PgConnection<OwnClient>
  readonly sinceMs: number
  /** Cancels the timer that ends it. */
  readonly cancel: () => void
}

/** Our own statements, or transactions in which a handler's code runs for as long as it likes. */
export type PoolUse = 'statements' | 'commits'

export interface PoolLimits {
  readonly use: PoolUse
  /** Maximum number of connections. */
  readonly most: number
  /** How long to wait for a free connection. */
  readonly waitMs: number
}

export interface PoolParts extends PoolLimits {
  readonly connector: Connector
  readonly clock: Clock
  readonly random: Random
}

/** A connection's place in the pool, from when it is opened or taken until it is released. */
interface Place {
  /** It no longer counts: another connection may use it. */
  yielded: boolean
  cancel: () => void
}

/** After this long, a firewall or proxy may have dropped the connection. */
const TRUSTED_IDLE_MS = 30_000
const CHECK_MS = 1_000
/** A statement that takes longer may be on a dead connection: it stops counting against the pool. */
const YIELD_AFTER_MS = 2_000
/** Long enough for the next job that commits; unused ones free a connection on the server. */
const IDLE_COMMIT_MS = 5_000
const LIFETIME_MS = 30 * 60_000
/** How long statements in progress may take to finish at a close. */
export const CLOSE_GRACE_MS = 2_000

export class OwnPool implements ConnectionPool {
  readonly #parts: PoolParts
  readonly #permits: Permits
  readonly #used = new Map<PgConnection<OwnClient>, Place>()
  readonly #retireAtMs = new WeakMap<PgConnection, number>()
  /** Connections that are being ended, by us or by the server on our request. */
  readonly #ending = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  #idle: Idle[] = []
  /** Number of connections beyond the configured number, and at most as many again. */
  #yielded = 0
  #onIdle = nothing

  constructor(parts: PoolParts) {
    this.#parts = parts
    this.#permits = new Permits(parts.clock, parts.most)
    // Each connection that is being opened adds a listener, so many listeners are not a leak.
    setMaxListeners(0, this.#closing.signal)
  }

  async take(waitMs = this.#parts.waitMs): Promise<PgConnection> {
    if (this.#closing.signal.aborted) throw closed()
    await this.#permits.take(waitMs, () => poolFull({ ...this.#parts, waitMs }))
    const place = this.#occupy()
    const obtained = this.#obtain()
    // A close waits for it as well.
    this.#track(obtained.then(nothing, nothing))
    try {
      const connection = await obtained
      this.#used.set(connection, place)
      connection.client.ref()
      return connection
    } catch (error) {
      this.#leave(place)
      throw error
    }
  }

  give(given: PgConnection): void {
    const connection = given as PgConnection<OwnClient>
    const place = this.#used.get(connection)
    if (place === undefined) throw new Error('a connection was released twice')
    this.#used.delete(connection)
    if (!connection.reusable) connection.destroy(connection.broken ?? new Error('left in a transaction'))
    else if (this.#closing.signal.aborted || this.#isOld(connection) || place.yielded) this.#end(connection)
    else this.#rest(connection)
    if (this.#used.size === 0) this.#onIdle()
    this.#leave(place)
  }

  async close(): Promise<void> {
    this.#closing.abort(closed())
    this.#permits.refuseAll(closed)
    this.#endIdle()
    if (this.#used.size > 0) {
      const idle = new Promise<void>((resolve) => (this.#onIdle = resolve))
      await withDeadline(this.#parts.clock, CLOSE_GRACE_MS, idle, closed).catch(nothing)
      for (const connection of this.#used.keys()) connection.destroy(closed())
    }
    // Each is bounded; ending may begin others.
    while (this.#ending.size > 0) await Promise.all(this.#ending)
  }

  async #obtain(): Promise<PgConnection<OwnClient>> {
    const connection = (await this.#takeIdle()) ?? (await this.#connect())
    if (this.#closing.signal.aborted) {
      // It came too late.
      connection.destroy(closed())
      throw closed()
    }
    return connection
  }

  #occupy(): Place {
    const place: Place = { yielded: false, cancel: nothing }
    // A handler's transaction may be long, and the user has chosen how many there may be.
    if (this.#parts.use === 'commits') return place
    const yieldPlace = (): void => {
      if (this.#yielded < this.#parts.most) this.#yieldPlace(place)
      else place.cancel = this.#parts.clock.after(YIELD_AFTER_MS, yieldPlace)
    }
    place.cancel = this.#parts.clock.after(YIELD_AFTER_MS, yieldPlace)
    return place
  }

  #yieldPlace(place: Place): void {
    place.yielded = true
    this.#yielded++
    this.#suspectIdle()
    this.#permits.give()
  }

  #leave(place: Place): void {
    place.cancel()
    if (place.yielded) this.#yielded--
    else this.#permits.give()
  }

  /** If one is lost or does not answer, the others may be lost as well: the next take() checks them first. */
  #suspectIdle(): void {
    this.#idle = this.#idle.map((idle) => ({ ...idle, sinceMs: -Infinity }))
  }

  /** The most recently used one first: the others may stay idle until they are replaced. */
  async #takeIdle(): Promise<PgConnection<OwnClient> | undefined> {
    const { clock } = this.#parts
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      const { connection, sinceMs } = idle
      idle.cancel()
      if (connection.broken !== undefined) connection.destroy(connection.broken)
      else if (this.#isOld(connection)) this.#end(connection)
      else if (clock.monotonicMs() - sinceMs < TRUSTED_IDLE_MS || (await this.#answers(connection)))
        return connection
    }
    return undefined
  }

  async #answers(connection: PgConnection<OwnClient>): Promise<boolean> {
    try {
      await connection.run({ text: 'select 1' }, CHECK_MS)
      return true
    } catch (error) {
      connection.destroy(toError(error))
      // The others have been idle for at least as long: checking each of them would take as much time again.
      this.#endIdle()
      return false
    }
  }

  async #connect(): Promise<PgConnection<OwnClient>> {
    const { connector, clock, random } = this.#parts
    const client = await connector.connect(this.#closing.signal)
    const connection = new PgConnection(client, clock, (busy) => {
      this.#suspectIdle()
      if (busy) this.#track(cancelRunning(clock, client))
      cut(client)
    })
    // Spread out, because they were all opened at about the same time.
    this.#retireAtMs.set(connection, clock.monotonicMs() + LIFETIME_MS * (0.9 + random.float() / 10))
    return connection
  }

  #rest(connection: PgConnection<OwnClient>): void {
    // Idle connections must not keep the process alive.
    connection.client.unref()
    const { clock, use } = this.#parts
    const cancel =
      use === 'commits' ? clock.after(IDLE_COMMIT_MS, () => this.#endUnused(connection)) : nothing
    this.#idle.push({ connection, sinceMs: clock.monotonicMs(), cancel })
  }

  #endUnused(connection: PgConnection<OwnClient>): void {
    this.#idle = this.#idle.filter((idle) => idle.connection !== connection)
    this.#end(connection)
  }

  #endIdle(): void {
    for (const { connection, cancel } of this.#idle.splice(0)) {
      cancel()
      this.#end(connection)
    }
  }

  #isOld(connection: PgConnection<OwnClient>): boolean {
    return this.#parts.clock.monotonicMs() >= (this.#retireAtMs.get(connection) ?? Infinity)
  }

  #end(connection: PgConnection<OwnClient>): void {
    this.#track(this.#parts.connector.end(connection.client))
  }

  #track(ending: Promise<void>): void {
    this.#ending.add(ending)
    void ending.finally(() => this.#ending.delete(ending))
  }
}

const nothing = (): void => undefined

export function closed(): HoldfastError {
  return new HoldfastError('HF_CLOSED', 'The database connection is closed.')
}

export function poolFull({ use, most, waitMs }: PoolLimits): HoldfastError {
  const within = formatDuration(waitMs)
  if (use === 'commits') {
    const all = most === 1 ? 'the only one is' : `all ${most} are`
    return unreachable(`No connection for commit() came free within ${within}: ${all} in use.`, {
      hint: 'Raise `commitConnections`, make the transactions shorter, or run fewer of these jobs at a time.',
    })
  }
  return unreachable(`No database connection came free within ${within}: all ${most} are in use.`, {
    hint: 'Raise `connections`, or look for transactions and statements that take long.',
  })
}
