/**
 * Access to PostgreSQL with `pg`. Every wait has a timeout on this side: `pg` alone hangs forever on a connection whose
 * other end is gone. Permanent errors come out as HoldfastErrors, under codes of their own; other errors of the server
 * and of the socket come out as they are, so that the caller takes them for an outage and tries again.
 */
import type { HoldfastError } from '../../../errors.ts'
import { systemClock } from '../../../std/clock.ts'
import type { Clock } from '../../../std/clock.ts'
import { systemRandom } from '../../../std/random.ts'
import type { Random } from '../../../std/random.ts'
import { toError } from '../../../std/text.ts'
import { retryAfter } from '../conflicts.ts'
import { explain, isConflict, isReplaced, isStalePlan } from '../server-errors.ts'
import { Connector, loadPg, resultTypes, unreachable } from './driver.ts'
import type { PgModule } from './driver.ts'
import { LentConnections } from './lent-pool.ts'
import { Listener, type Listening } from './listener.ts'
import { readPgOptions } from './options.ts'
import type { PgExecutorOptions, PgSettings } from './options.ts'
import { OwnPool, closed } from './own-pool.ts'
import type { PoolUse, ConnectionPool } from './own-pool.ts'
import { Preparing } from './preparing.ts'
import { askServer, checkServer } from './server.ts'
import type { ServerFacts, ServerState } from './server.ts'
import type { PgConnection } from './connection.ts'
import type { Queryable, SqlValue, Statement } from './statement.ts'
import { rethrow, transact, type Transaction } from './transaction.ts'
import { threadWire, ownWire, type ListenThread, type Wire, type WireTells } from './wire.ts'

export interface PgParts {
  readonly clock: Clock
  readonly random: Random
  readonly load: () => Promise<PgModule>
  /** The thread whose connection listens. @default null: a connection of our own */
  readonly thread: ListenThread | null
}

export interface TransactionOptions {
  /**
   * A handler's code runs in it, for as long as that takes: it must not take a connection from claims, settles and
   * enqueues. @default false
   */
  readonly ofHandler?: boolean
  /** How long to wait for a connection. @default that of the pool */
  readonly waitMs?: number
}

/** Migrations may build indexes of large tables. */
const SCRIPT_MS = 600_000

export function pgExecutor(options: PgExecutorOptions, parts: Partial<PgParts> = {}): PgExecutor {
  return new PgExecutor(readPgOptions(options), {
    clock: parts.clock ?? systemClock,
    random: parts.random ?? systemRandom,
    load: parts.load ?? loadPg,
    thread: parts.thread ?? null,
  })
}

export class PgExecutor implements Queryable {
  readonly #settings: PgSettings
  readonly #parts: PgParts
  readonly #preparing: Preparing
  readonly #pool: ConnectionPool
  /** For handlers' transactions: they may take all of these, and none of the others. */
  readonly #commitPool: ConnectionPool
  /** Null if there is no connection string to open a connection with. */
  readonly #listener: Listener | null
  #opening: Promise<ServerFacts> | undefined
  #closing: Promise<void> | undefined
  #saidDeaf = false
  /**
   * Errors of our own statements that an upgrade may have caused. A handler's statements may fail in the same way, but
   * are not repeated.
   */
  readonly #interrupted = new WeakSet<object>()
  /** Whether single statements run at read committed, which all of ours need: they lock first and read then. */
  #isReadCommitted = true

  constructor(settings: PgSettings, parts: PgParts) {
    const { clock, random, load, thread } = parts
    const { connectionString, pool, applicationName, onNotice } = settings
    this.#settings = settings
    this.#parts = parts
    this.#preparing = new Preparing(settings.prepare, onNotice)
    const connector =
      connectionString === null ? null : new Connector(load, { connectionString, applicationName }, clock)
    const poolFor = (use: PoolUse): ConnectionPool => {
      const most = use === 'commits' ? settings.commitConnections : settings.connections
      const limits = { use, most, waitMs: settings.queryTimeoutMs }
      if (pool !== null) return new LentConnections(pool, clock, limits)
      if (connector === null) throw new TypeError('neither a connection string nor a pool')
      return new OwnPool({ connector, clock, random, ...limits })
    }
    this.#pool = poolFor('statements')
    this.#commitPool = poolFor('commits')
    this.#listener =
      connector === null
        ? null
        : new Listener({
            openWire: (...call) => this.#openWire(connector, ...call),
            clock,
            random,
            onNotice,
            notify: (...notice) => this.#notify(...notice),
          })
    if (thread !== null) thread.onThread = () => this.#listener?.moveToThread()
  }

  /** Connects, and returns what it found. Safe to call again. Rejects if the database cannot be used. */
  open(): Promise<ServerFacts> {
    if (this.#closing !== undefined) return Promise.reject(closed())
    this.#opening ??= this.#ask().catch((error: unknown) => {
      // The next call tries again.
      this.#opening = undefined
      throw error
    })
    return this.#opening
  }

  query<Row>(statement: Statement, values: readonly SqlValue[], withinMs = Infinity): Promise<Row[]> {
    const waitMs = Math.min(this.#timeoutMs(statement), withinMs)
    let sendByMs = this.#parts.clock.monotonicMs() + withinMs
    const refuseIfLate = (): void => {
      // It may have taken long to open the connection, or to find one that works.
      if (this.#parts.clock.monotonicMs() > sendByMs) throw tooLate()
      // What was sent and rolled back is sent again.
      sendByMs = Infinity
    }
    if (!this.#isReadCommitted) {
      const runIn = (tx: Transaction): Promise<Row[]> => {
        refuseIfLate()
        return tx.query<Row>(statement, values)
      }
      return this.transaction(runIn, { waitMs })
    }
    const run = (connection: PgConnection): Promise<Row[]> => {
      refuseIfLate()
      return this.#run<Row>(connection, statement, values)
    }
    return this.#retried(() => withConnection(this.#pool, run, waitMs)).catch(rethrow)
  }

  /**
   * Runs statements in one transaction on one connection (read committed); commits when `work` resolves, rolls back
   * when it rejects. Deadlocks and serialization failures (40P01, 40001) are tried again as a whole a few times. What
   * `work` itself throws comes out as it is.
   */
  async transaction<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    let thrownByWork: unknown
    const watched = async (tx: Transaction): Promise<T> => {
      try {
        return await work(tx)
      } catch (error) {
        thrownByWork = error
        throw error
      }
    }
    try {
      return await this.#transact(watched, options)
    } catch (error) {
      throw error === thrownByWork ? error : explain(error)
    }
  }

  #transact<T>(work: (tx: Transaction) => Promise<T>, options: TransactionOptions): Promise<T> {
    const { ofHandler = false, waitMs } = options
    const run = (connection: PgConnection): Promise<T> =>
      transact(
        {
          connection,
          timeoutMs: this.#settings.queryTimeoutMs,
          scriptTimeoutMs: this.#scriptTimeoutMs,
          run: (...call) => this.#run(...call),
          isWorthRetrying: this.#isWorthRetrying,
        },
        work,
      )
    const pool = ofHandler ? this.#commitPool : this.#pool
    return this.#retried(() => withConnection(pool, run, waitMs))
  }

  async script(sql: string): Promise<void> {
    await withConnection(this.#pool, async (connection) => {
      try {
        await connection.run({ text: sql }, this.#scriptTimeoutMs)
      } catch (error) {
        // It may have begun a transaction, or changed a setting of the connection.
        connection.destroy(toError(error))
        throw error
      }
    }).catch(rethrow)
  }

  /**
   * Listens on a channel until stopped. `onGap` is called whenever notices may have been missed (the connection was
   * lost and is back); if the database cannot listen at all, `onGap` is never called and `listening` is false.
   */
  async listen(channel: string, onNotice: (payload: string) => void, onGap: () => void): Promise<Listening> {
    if (this.#closing !== undefined) throw closed()
    if (this.#listener !== null) return this.#listener.listen(channel, onNotice, onGap).catch(rethrow)
    if (!this.#saidDeaf) {
      this.#saidDeaf = true
      this.#settings.onNotice(
        'A lent pool without a connection string cannot LISTEN, so workers find new jobs by polling only, somewhat later. Pass a connection string in addition to `pool`.',
      )
    }
    return { listening: false, stop: () => Promise.resolve() }
  }

  /** Gives everything back, within a bounded time; later calls reject with HF_CLOSED. Safe to call again. */
  close(): Promise<void> {
    this.#closing ??= Promise.all([
      this.#listener?.close(),
      this.#pool.close(),
      this.#commitPool.close(),
    ]).then(() => undefined)
    return this.#closing
  }

  get #scriptTimeoutMs(): number {
    return Math.max(SCRIPT_MS, this.#settings.queryTimeoutMs)
  }

  async #ask(): Promise<ServerFacts> {
    const [state] = await this.query<ServerState>(askServer, [])
    const facts = checkServer(state)
    this.#noteIsolation(state?.isolation)
    return facts
  }

  #noteIsolation(level = 'read committed'): void {
    if (level === 'read committed' || !this.#isReadCommitted) return
    this.#isReadCommitted = false
    this.#settings.onNotice(
      `Statements run at "${level}" by default here, so each of ours needs its own transaction at "read committed", which is somewhat slower. To avoid that, set default_transaction_isolation to 'read committed' for this role.`,
    )
  }

  async #notify(channel: string, payload: string): Promise<void> {
    await this.query({ name: 'notify', text: 'select pg_notify($1::text, $2::text)' }, [channel, payload])
  }

  async #openWire(connector: Connector, tells: WireTells, stop: AbortSignal): Promise<Wire> {
    const { clock, thread } = this.#parts
    const port = thread?.openPort() ?? null
    const shared = port === null ? null : await threadWire(port, clock, tells, stop)
    return shared ?? ownWire(connector, clock, tells, stop)
  }

  readonly #isWorthRetrying = (error: unknown): boolean =>
    isConflict(error) || isStalePlan(error) || this.#isInterrupted(error) || this.#preparing.givesUp(error)

  #isInterrupted(error: unknown): boolean {
    return error instanceof Error && this.#interrupted.has(error)
  }

  #retried<T>(work: () => Promise<T>): Promise<T> {
    return work().catch((error: unknown) => retryAfter(error, this.#parts, this.#isWorthRetrying, work))
  }

  async #run<Row>(
    connection: PgConnection,
    statement: Statement,
    values: readonly SqlValue[],
  ): Promise<Row[]> {
    const name = this.#preparing.nameOf(statement)
    const query = {
      text: statement.text,
      values: [...values],
      types: resultTypes,
      ...(name === undefined ? {} : { name }),
    }
    try {
      const { rows } = await connection.run(query, this.#timeoutMs(statement))
      return rows as Row[]
    } catch (error) {
      if (isReplaced(error) && error instanceof Error) this.#interrupted.add(error)
      throw error
    }
  }

  #timeoutMs({ timeoutMs = Infinity }: Statement): number {
    return Math.min(this.#settings.queryTimeoutMs, timeoutMs)
  }
}

async function withConnection<T>(
  pool: ConnectionPool,
  work: (connection: PgConnection) => Promise<T>,
  waitMs?: number,
): Promise<T> {
  const connection = await pool.take(waitMs)
  try {
    return await work(connection)
  } finally {
    pool.give(connection)
  }
}

function tooLate(): HoldfastError {
  return unreachable('A connection came too late: the caller no longer waits for this statement.')
}
