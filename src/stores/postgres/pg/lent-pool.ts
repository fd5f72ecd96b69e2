/** A pool that the user lent us: connections are borrowed from it, and it is never ended. */
import type { Clock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import { formatDuration } from '../../../std/duration.ts'
import { Permits } from '../permits.ts'
import { unreachable } from './driver.ts'
import type { PgClient } from './driver.ts'
import { CLOSE_GRACE_MS, closed, poolFull } from './own-pool.ts'
import type { PoolLimits, ConnectionPool } from './own-pool.ts'
import { PgConnection } from './connection.ts'

/** The part of a `pg.Pool` that we use. */
export interface LentPool {
  connect(): Promise<LentClient>
}

export interface LentClient extends PgClient {
  /** Gives it back; true ends it. */
  release(destroy?: boolean): void
}

/** An `error` on an idle connection of a pool without a listener ends the process. */
interface ErrorSource {
  on(event: 'error', listener: () => void): unknown
  removeListener(event: 'error', listener: () => void): unknown
}

export class LentConnections implements ConnectionPool {
  readonly #pool: LentPool
  readonly #clock: Clock
  readonly #limits: PoolLimits
  /** The owner decides how many connections statements may use; handlers' transactions must leave them some. */
  readonly #permits: Permits
  readonly #used = new Set<PgConnection<LentClient>>()
  readonly #ignore = (): void => undefined
  #closed = false
  #onIdle: () => void = () => undefined

  constructor(pool: LentPool, clock: Clock, limits: PoolLimits) {
    this.#pool = pool
    this.#clock = clock
    this.#limits = limits
    this.#permits = new Permits(clock, limits.use === 'commits' ? limits.most : Infinity)
    if (isErrorSource(pool)) pool.on('error', this.#ignore)
  }

  async take(waitMs = this.#limits.waitMs): Promise<PgConnection> {
    if (this.#closed) throw closed()
    await this.#permits.take(waitMs, () => poolFull({ ...this.#limits, waitMs }))
    try {
      const client = await this.#borrow(waitMs)
      const connection = new PgConnection(client, this.#clock, () => client.release(true))
      if (this.#closed) {
        connection.destroy(closed())
        throw closed()
      }
      this.#used.add(connection)
      return connection
    } catch (error) {
      this.#permits.give()
      throw error
    }
  }

  give(given: PgConnection): void {
    const connection = given as PgConnection<LentClient>
    this.#used.delete(connection)
    if (connection.reusable) {
      connection.detach()
      connection.client.release()
    } else {
      connection.destroy(connection.broken ?? new Error('left in a transaction'))
    }
    this.#permits.give()
    if (this.#used.size === 0) this.#onIdle()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#permits.refuseAll(closed)
    if (this.#used.size > 0) {
      const idle = new Promise<void>((resolve) => (this.#onIdle = resolve))
      await withDeadline(this.#clock, CLOSE_GRACE_MS, idle, closed).catch(() => undefined)
      for (const connection of this.#used) connection.destroy(closed())
    }
    if (isErrorSource(this.#pool)) this.#pool.removeListener('error', this.#ignore)
  }

  async #borrow(waitMs: number): Promise<LentClient> {
    let late = false
    const connecting = this.#pool.connect().then((client) => {
      // The caller no longer waits for it.
      if (late) client.release()
      return client
    })
    return withDeadline(this.#clock, waitMs, connecting, () => {
      late = true
      return unreachable(`The lent pool gave no connection within ${formatDuration(waitMs)}.`, {
        hint: 'Raise the `max` of the pool, or look for clients that are never released.',
      })
    })
  }
}

function isErrorSource(pool: unknown): pool is ErrorSource {
  return (
    typeof pool === 'object' &&
    pool !== null &&
    'on' in pool &&
    typeof pool.on === 'function' &&
    'removeListener' in pool &&
    typeof pool.removeListener === 'function'
  )
}
