/**
 * A few connections of our own. Whoever takes one gets one that works: those that stood idle are asked first, those that
 * are old are replaced, and waiting for a free one has an end.
 *
 * A statement may take half a minute, but one whose connection is dead takes as long to fail, and a worker should be back
 * sooner than that. So what is not done after a moment goes on, but gives its place to somebody else.
 */
import { setMaxListeners } from 'node:events'
import { HoldfastError } from '../../../errors.ts'
import type { Clock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import { formatDuration } from '../../../std/duration.ts'
import type { Random } from '../../../std/random.ts'
import { Permits } from '../permits.ts'
import { cancelRunning } from './cancel.ts'
import { cut, unreachable } from './driver.ts'
import type { Connector, OwnClient } from './driver.ts'
import { PgConnection } from './connection.ts'

/** Where connections come from and go back to. */
export interface ConnectionPool {
  /** Waits for a free one, this long at most if told. */
  take(waitMs?: number): Promise<PgConnection>
  give(connection: PgConnection): void
  /** Waits a moment for those in use, then cuts them off. */
  close(): Promise<void>
}

interface Idle {
  readonly connection: PgConnection<OwnClient>
  readonly sinceMs: number
  /** It is not idle any more. */
  readonly cancel: () => void
}

/** Statements of ours, or transactions in which a handler's code runs, for as long as that takes. */
export type PoolUse = 'statements' | 'commits'

export interface PoolLimits {
  readonly use: PoolUse
  /** How many connections. */
  readonly most: number
  /** How long to wait for a free connection. */
  readonly waitMs: number
}

export interface PoolParts extends PoolLimits {
  readonly connector: Connector
  readonly clock: Clock
  readonly random: Random
}

/** One of the places that connections take up, from when it is made or taken until it is given back. */
interface Place {
  /** It counts no more: somebody else has it. */
  lent: boolean
  cancel: () => void
}

/** Beyond this, somebody on the way may have forgotten the connection. */
const TRUSTED_IDLE_MS = 30_000
const CHECK_MS = 1_000
/** What takes longer may be dead: it keeps its place from nobody else. */
const LEND_AFTER_MS = 2_000
/** Long enough for the next job that commits; those that nobody needs any more are somebody else's on the server. */
const IDLE_COMMIT_MS = 5_000
const LIFETIME_MS = 30 * 60_000
/** How long what is under way at a close may take to end. */
export const CLOSE_GRACE_MS = 2_000

export class OwnPool implements ConnectionPool {
  readonly #parts: PoolParts
  readonly #permits: Permits
  readonly #used = new Map<PgConnection<OwnClient>, Place>()
  readonly #retireAtMs = new WeakMap<PgConnection, number>()
  /** What is being ended, by us or by the server on our request. */
  readonly #ending = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  #idle: Idle[] = []
  /** How many there are beyond the number that was asked for; never more than that once again. */
  #lent = 0
  #onIdle = nothing

  constructor(parts: PoolParts) {
    this.#parts = parts
    this.#permits = new Permits(parts.clock, parts.most)
    // Every connection in the making listens: any number of them is no leak.
    setMaxListeners(0, this.#closing.signal)
  }

  async take(waitMs = this.#parts.waitMs): Promise<PgConnection> {
    if (this.#closing.signal.aborted) throw closed()
    await this.#permits.take(waitMs, () => poolFull({ ...this.#parts, waitMs }))
    const place = this.#occupy()
    const obtained = this.#obtain()
    // A close waits for it, too.
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
    else if (this.#closing.signal.aborted || this.#isOld(connection) || place.lent) this.#end(connection)
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
    const place: Place = { lent: false, cancel: nothing }
    // A handler's transaction takes what it takes, and their number is what the user allowed.
    if (this.#parts.use === 'commits') return place
    const lend = (): void => {
      if (this.#lent < this.#parts.most) this.#lend(place)
      else place.cancel = this.#parts.clock.after(LEND_AFTER_MS, lend)
    }
    place.cancel = this.#parts.clock.after(LEND_AFTER_MS, lend)
    return place
  }

  #lend(place: Place): void {
    place.lent = true
    this.#lent++
    this.#suspectIdle()
    this.#permits.give()
  }

  #leave(place: Place): void {
    place.cancel()
    if (place.lent) this.#lent--
    else this.#permits.give()
  }

  /** Where one is lost or does not answer, the others may be lost as well: whoever takes them next asks first. */
  #suspectIdle(): void {
    this.#idle = this.#idle.map((idle) => ({ ...idle, sinceMs: -Infinity }))
  }

  /** The one that was used last: the others may stand idle until they are replaced. */
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
      connection.destroy(error instanceof Error ? error : new Error('no answer'))
      // The others stood idle for as long or longer: asking them, too, would take as much time again.
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
    // Not all at once, as they were made.
    this.#retireAtMs.set(connection, clock.monotonicMs() + LIFETIME_MS * (0.9 + random.float() / 10))
    return connection
  }

  #rest(connection: PgConnection<OwnClient>): void {
    // Idle connections keep no process alive.
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
