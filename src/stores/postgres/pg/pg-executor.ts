/**
 * The executor on PostgreSQL, by `pg`. Every wait has an end on this side: `pg` alone hangs for ever on a connection whose
 * other end is gone. Errors of the server and of the socket come out as they are, so that the caller takes them for
 * an outage and tries again; ours say what to do.
 */
import { systemClock } from '../../../std/clock.ts'
import type { Clock } from '../../../std/clock.ts'
import { systemRandom } from '../../../std/random.ts'
import type { Random } from '../../../std/random.ts'
import { retryWhile } from '../conflicts.ts'
import type { Executor, Listening, ServerFacts, SqlValue, Statement, Transaction } from '../executor.ts'
import { isConflict, isStalePlan } from '../server-errors.ts'
import { Connector, loadPg, resultTypes } from './driver.ts'
import type { PgModule } from './driver.ts'
import { LentSessions } from './lent-pool.ts'
import { Listener } from './listener.ts'
import { readPgOptions } from './options.ts'
import type { PgExecutorOptions, PgSettings } from './options.ts'
import { OwnPool, closed } from './own-pool.ts'
import type { Sessions } from './own-pool.ts'
import { Preparing } from './preparing.ts'
import { askServer, checkServer } from './server.ts'
import type { ServerState } from './server.ts'
import type { Session } from './session.ts'
import { transact } from './transaction.ts'

export interface PgParts {
  readonly clock: Clock
  readonly random: Random
  readonly load: () => Promise<PgModule>
}

/** Migrations may build indexes of large tables. */
const SCRIPT_MS = 600_000

export function pgExecutor(options: PgExecutorOptions, parts: Partial<PgParts> = {}): Executor {
  return new PgExecutor(readPgOptions(options), {
    clock: parts.clock ?? systemClock,
    random: parts.random ?? systemRandom,
    load: parts.load ?? loadPg,
  })
}

class PgExecutor implements Executor {
  readonly #settings: PgSettings
  readonly #parts: PgParts
  readonly #preparing: Preparing
  readonly #sessions: Sessions
  /** Null where there is no way to a connection of our own. */
  readonly #listener: Listener | null
  #opening: Promise<ServerFacts> | undefined
  #closing: Promise<void> | undefined
  #saidDeaf = false
  /** Whether a statement by itself runs at read committed, as all of ours need to: they lock first and look then. */
  #isReadCommitted = true

  constructor(settings: PgSettings, parts: PgParts) {
    const { clock, random, load } = parts
    const { connectionString, pool, queryTimeoutMs, connections, applicationName, onNotice } = settings
    this.#settings = settings
    this.#parts = parts
    this.#preparing = new Preparing(settings.prepare, onNotice)
    const connector =
      connectionString === null ? null : new Connector(load, { connectionString, applicationName }, clock)
    if (pool !== null) {
      this.#sessions = new LentSessions(pool, clock, queryTimeoutMs)
    } else if (connector !== null) {
      this.#sessions = new OwnPool({ connector, clock, random, connections, waitMs: queryTimeoutMs })
    } else {
      throw new TypeError('neither a connection string nor a pool')
    }
    this.#listener =
      connector === null
        ? null
        : new Listener({ connector, clock, random, onNotice, notify: (...notice) => this.#notify(...notice) })
  }

  open(): Promise<ServerFacts> {
    if (this.#closing !== undefined) return Promise.reject(closed())
    this.#opening ??= this.#ask().catch((error: unknown) => {
      // The next call tries again.
      this.#opening = undefined
      throw error
    })
    return this.#opening
  }

  query<Row>(statement: Statement, values: readonly SqlValue[]): Promise<Row[]> {
    if (!this.#isReadCommitted) return this.transaction((tx) => tx.query<Row>(statement, values))
    const run = (session: Session): Promise<Row[]> => this.#run<Row>(session, statement, values)
    return this.#retried(() => this.#withSession(run, this.#timeoutMs(statement)))
  }

  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#retried(() =>
      this.#withSession((session) =>
        transact(
          {
            session,
            timeoutMs: this.#settings.queryTimeoutMs,
            scriptTimeoutMs: this.#scriptTimeoutMs,
            run: (...call) => this.#run(...call),
            isWorthRetrying: this.#isWorthRetrying,
          },
          work,
        ),
      ),
    )
  }

  async script(sql: string): Promise<void> {
    await this.#withSession(async (session) => {
      try {
        await session.run({ text: sql }, this.#scriptTimeoutMs)
      } catch (error) {
        // It may have begun a transaction, or changed a setting of the session.
        session.destroy(error instanceof Error ? error : new Error('the script failed'))
        throw error
      }
    })
  }

  async listen(channel: string, onNotice: (payload: string) => void, onGap: () => void): Promise<Listening> {
    if (this.#closing !== undefined) throw closed()
    if (this.#listener !== null) return this.#listener.listen(channel, onNotice, onGap)
    if (!this.#saidDeaf) {
      this.#saidDeaf = true
      this.#settings.onNotice(
        'A lent pool without a connection string cannot LISTEN: new jobs are found by polling only, somewhat later. Pass `connectionString` beside `pool` to be woken at once.',
      )
    }
    return { listening: false, stop: () => Promise.resolve() }
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all([this.#listener?.close(), this.#sessions.close()]).then(() => undefined)
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
      `Statements run at "${level}" by default here: each of ours takes a transaction at "read committed" of its own, somewhat slower. Set default_transaction_isolation to 'read committed' for this role to spare that.`,
    )
  }

  async #notify(channel: string, payload: string): Promise<void> {
    await this.query({ name: 'notify', text: 'select pg_notify($1::text, $2::text)' }, [channel, payload])
  }

  readonly #isWorthRetrying = (error: unknown): boolean =>
    isConflict(error) || isStalePlan(error) || this.#preparing.givesUp(error)

  #retried<T>(work: () => Promise<T>): Promise<T> {
    return retryWhile(this.#parts, this.#isWorthRetrying, work)
  }

  async #withSession<T>(work: (session: Session) => Promise<T>, waitMs?: number): Promise<T> {
    const session = await this.#sessions.take(waitMs)
    try {
      return await work(session)
    } finally {
      this.#sessions.give(session)
    }
  }

  async #run<Row>(session: Session, statement: Statement, values: readonly SqlValue[]): Promise<Row[]> {
    const name = this.#preparing.nameOf(statement)
    const { rows } = await session.run(
      {
        text: statement.text,
        values: [...values],
        types: resultTypes,
        ...(name === undefined ? {} : { name }),
      },
      this.#timeoutMs(statement),
    )
    return rows as Row[]
  }

  #timeoutMs({ timeoutMs = Infinity }: Statement): number {
    return Math.min(this.#settings.queryTimeoutMs, timeoutMs)
  }
}
