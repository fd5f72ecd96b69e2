/**
 * The executor on PGlite: PostgreSQL inside this process, with one connection. Calls take turns; a transaction holds its
 * turn until it is over, and has a deadline, since everybody waits for it. A call from inside a transaction that does not
 * go through it would wait for itself for ever, so it is refused.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { HoldfastError } from '../../../errors.ts'
import { systemClock } from '../../../std/clock.ts'
import type { Clock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import { formatDuration } from '../../../std/duration.ts'
import { systemRandom } from '../../../std/random.ts'
import type { Random } from '../../../std/random.ts'
import { retryWhile } from '../conflicts.ts'
import type { Executor, Listening, ServerFacts, SqlValue, Statement, Transaction } from '../executor.ts'
import { textArray } from '../literals.ts'
import { Slots } from '../slots.ts'
import { isConflict, isLostStatement, isStalePlan } from '../server-errors.ts'
import { holdDirectory } from './data-directory.ts'
import type { DataDirectory } from './data-directory.ts'
import { Database, loadPglite } from './database.ts'
import type { PgliteModule } from './database.ts'
import type { Answer } from './wire.ts'

export interface PgliteExecutorOptions {
  /** Where the data lives; created if it is not there. Null keeps everything in memory. */
  readonly directory: string | null
  /** How long a transaction may hold the only connection; others wait for it twice as long. @default 30_000 */
  readonly transactionTimeoutMs?: number
  /** Told what takes a while at the start, in lines for people. @default nobody */
  readonly onProgress?: (line: string) => void
}

export interface PgliteParts {
  readonly clock: Clock
  readonly random: Random
  readonly load: () => Promise<PgliteModule>
}

/** PGlite never waits for the event loop: timers and sockets get their turn at least this often. */
const YIELD_MS = 10
/** A busy worker writes some 10 MB of log a second. */
const LOOK_EVERY_MS = 1_000
/** How long a transaction under way at a close may take to end. */
const CLOSE_GRACE_MS = 2_000

export function pgliteExecutor(options: PgliteExecutorOptions, parts: Partial<PgliteParts> = {}): Executor {
  return new PgliteExecutor(options, {
    clock: parts.clock ?? systemClock,
    random: parts.random ?? systemRandom,
    load: parts.load ?? loadPglite,
  })
}

interface Running {
  readonly database: Database
  readonly directory: DataDirectory | null
  readonly facts: ServerFacts
}

interface Listener {
  readonly onNotice: (payload: string) => void
  readonly onGap: () => void
}

interface RunningTransaction {
  over: boolean
  /** The first error of a statement: from then on it can only be rolled back. */
  failure: Error | undefined
  /** Ends it from outside. */
  readonly abort: (reason: Error) => void
}

const ASK_VERSION: Statement = {
  name: 'server',
  text: `select current_setting('server_version_num')::int as version`,
}

class PgliteExecutor implements Executor {
  readonly #options: PgliteExecutorOptions
  readonly #parts: PgliteParts
  readonly #timeoutMs: number
  readonly #turn: Slots
  /** Which transaction the code that is running belongs to. */
  readonly #inside = new AsyncLocalStorage<RunningTransaction | undefined>()
  readonly #channels = new Map<string, Set<Listener>>()
  #starting: Promise<Running> | undefined
  #closing: Promise<void> | undefined
  #current: RunningTransaction | undefined
  #yieldedMs = -Infinity
  #lookedMs = systemClock.monotonicMs()

  constructor(options: PgliteExecutorOptions, parts: PgliteParts) {
    this.#options = options
    this.#parts = parts
    this.#timeoutMs = options.transactionTimeoutMs ?? 30_000
    this.#turn = new Slots(parts.clock, 1)
  }

  async open(): Promise<ServerFacts> {
    return (await this.#start()).facts
  }

  async query<Row>(statement: Statement, values: readonly SqlValue[]): Promise<Row[]> {
    this.#refuseInside(`run "${statement.name}"`)
    return this.#retried(() =>
      this.#inTurn(async ({ database }) => this.#rows<Row>(await database.query(statement, values))),
    )
  }

  async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    this.#refuseInside('begin another transaction')
    return this.#retried(() => this.#inTurn(({ database }) => this.#transact(database, work)))
  }

  async script(sql: string): Promise<void> {
    this.#refuseInside('run a script')
    await this.#inTurn(async ({ database }) => {
      const answer = await database.script(sql)
      // One that it began and did not end.
      if (answer.status !== 'I') await database.script('rollback')
      this.#rows(answer)
    })
  }

  async listen(channel: string, onNotice: (payload: string) => void, onGap: () => void): Promise<Listening> {
    this.#refuseInside('listen')
    const listener: Listener = { onNotice, onGap }
    await this.#inTurn(async ({ database }) => {
      this.#rows(await database.script(listenTo(channel)))
      this.#channels.set(channel, (this.#channels.get(channel) ?? new Set()).add(listener))
    })
    return {
      listening: true,
      // The database goes on listening: to end that would have to wait its turn, and a notice for nobody costs nothing.
      stop: () => {
        this.#channels.get(channel)?.delete(listener)
        return Promise.resolve()
      },
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown()
    return this.#closing
  }

  async #start(): Promise<Running> {
    if (this.#closing !== undefined) throw closed()
    this.#starting ??= this.#startNow().catch((error: unknown) => {
      // The next call tries again.
      this.#starting = undefined
      throw error
    })
    return this.#starting
  }

  async #startNow(): Promise<Running> {
    const { load, clock } = this.#parts
    const module = await load()
    const directory = this.#options.directory === null ? null : holdDirectory(this.#options.directory, clock)
    try {
      if (directory?.isNew === true) {
        this.#options.onProgress?.(
          `Creating the embedded database in ${directory.path}; this takes some seconds, once.`,
        )
      }
      const database = await Database.start(module, directory?.path ?? null)
      directory?.finished()
      const [facts] = this.#rows<ServerFacts>(await database.query(ASK_VERSION, []))
      if (facts === undefined) throw unreachable('The embedded database did not tell its version.')
      await this.#listenAgain(database)
      return { database, directory, facts: { version: facts.version } }
    } catch (error) {
      directory?.release()
      throw error
    }
  }

  /** After one that broke. */
  async #listenAgain(database: Database): Promise<void> {
    for (const [channel, listeners] of this.#channels) {
      this.#rows(await database.script(listenTo(channel)))
      for (const { onGap } of listeners) queueMicrotask(onGap)
    }
  }

  async #shutDown(): Promise<void> {
    this.#turn.refuseAll(closed)
    const running = await this.#starting?.catch(() => undefined)
    if (running === undefined) return
    const { clock } = this.#parts
    const giveUp = clock.after(CLOSE_GRACE_MS, () => this.#current?.abort(closed()))
    // Whoever has its turn gets to its end; with the grace above, that is soon.
    await this.#turn.take(2 * CLOSE_GRACE_MS, closed).catch(() => undefined)
    giveUp()
    try {
      await running.database.close()
    } finally {
      running.directory?.release()
    }
  }

  async #transact<T>(database: Database, work: (tx: Transaction) => Promise<T>): Promise<T> {
    this.#rows(await database.script('begin isolation level read committed'))
    let abort: (reason: Error) => void = () => undefined
    const aborted = new Promise<never>((_, reject) => (abort = reject))
    const transaction: RunningTransaction = { over: false, failure: undefined, abort }
    this.#current = transaction
    try {
      const done = this.#inside.run(transaction, () => work(this.#queryableIn(transaction, database)))
      const result = await withDeadline(
        this.#parts.clock,
        this.#timeoutMs,
        Promise.race([done, aborted]),
        () => tooLong(this.#timeoutMs),
      )
      transaction.over = true
      await this.#commit(database, transaction)
      return result
    } catch (error) {
      transaction.over = true
      // After a failed commit this only says that there is none; where it fails, the first error matters more.
      await database.script('rollback').catch(() => undefined)
      throw isWorthRetrying(transaction.failure) ? transaction.failure : error
    } finally {
      this.#current = undefined
    }
  }

  #queryableIn(transaction: RunningTransaction, database: Database): Transaction {
    const run = async <Row>(what: string, send: () => Promise<Answer>): Promise<Row[]> => {
      // Its deadline needs a turn of the loop, too.
      await this.#yield()
      if (transaction.over) throw transactionOver(what)
      const answer = await send()
      transaction.failure ??= answer.error ?? undefined
      return this.#rows<Row>(answer)
    }
    return {
      query: (statement, values) => run(statement.name, () => database.query(statement, values)),
      script: async (sql) => void (await run('a script', () => database.script(sql))),
      handle: {
        query: async (text, values = []) => ({
          // Under one name, which the next statement takes over.
          rows: await run('a statement', () =>
            database.query({ name: 'handler', text }, values.map(asSqlValue)),
          ),
        }),
      },
    }
  }

  async #commit(database: Database, { failure }: RunningTransaction): Promise<void> {
    let answer
    try {
      answer = await database.script('commit')
    } catch (cause) {
      throw unreachable('The embedded database stopped during a commit: whether it was done is not known.', {
        cause,
      })
    }
    this.#rows(answer)
    // What the server answers to the commit of a transaction in which a statement failed.
    if (answer.command === 'ROLLBACK') throw failure ?? unreachable('The transaction was rolled back.')
  }

  /** Longer than a transaction may last: who waits for one that hangs still gets through. */
  get #waitMs(): number {
    return 2 * this.#timeoutMs
  }

  #retried<T>(work: () => Promise<T>): Promise<T> {
    return retryWhile(this.#parts, isWorthRetrying, work)
  }

  async #inTurn<T>(work: (running: Running) => Promise<T>): Promise<T> {
    // Started first: the wait for a turn is bounded by less than a start may take.
    await this.#start()
    await this.#turn.take(this.#waitMs, () => busy(this.#waitMs))
    try {
      const running = await this.#start()
      await this.#yield()
      try {
        return await work(running)
      } finally {
        await this.#lookAfter(running)
      }
    } finally {
      this.#turn.give()
    }
  }

  async #lookAfter(running: Running): Promise<void> {
    if (systemClock.monotonicMs() - this.#lookedMs >= LOOK_EVERY_MS) {
      this.#lookedMs = systemClock.monotonicMs()
      // What was asked for is done; where this fails, that shows in what is asked for next.
      await running.database.shortenLog().catch(() => undefined)
    }
    this.#abandonIfBroken(running)
  }

  /**
   * The next call starts a new one on the same directory; the old one is not closed, since what is left of it must not
   * touch the files any more. What was in memory only is gone, and stays an error.
   */
  #abandonIfBroken({ database, directory }: Running): void {
    if (!database.broken || directory === null) return
    directory.release()
    this.#starting = undefined
  }

  /** By the real clock, whatever the others use: it is the real loop that has to turn. */
  async #yield(): Promise<void> {
    if (systemClock.monotonicMs() - this.#yieldedMs < YIELD_MS) return
    await new Promise<void>((resolve) => void systemClock.after(0, resolve))
    this.#yieldedMs = systemClock.monotonicMs()
  }

  #rows<Row>(answer: Answer): Row[] {
    for (const { channel, payload } of answer.notices) this.#deliver(channel, payload)
    if (answer.error !== null) throw answer.error
    return answer.rows as Row[]
  }

  /** Outside of any transaction, and apart from each other: what one of them throws is not the others' problem. */
  #deliver(channel: string, payload: string): void {
    for (const { onNotice } of this.#channels.get(channel) ?? []) {
      this.#inside.run(undefined, () => queueMicrotask(() => onNotice(payload)))
    }
  }

  #refuseInside(doing: string): void {
    const transaction = this.#inside.getStore()
    if (transaction === undefined || transaction.over) return
    throw new HoldfastError(
      'HF_INSIDE_TRANSACTION',
      `The embedded database has one connection, and a transaction holds it: to ${doing} from inside would wait for itself for ever.`,
    )
  }
}

/** What a handler passes, as `pg` would write it. */
function asSqlValue(value: unknown): SqlValue {
  if (value === null || value === undefined) return null
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`
  if (Array.isArray(value))
    return textArray(value.map((item) => (item === null ? null : String(asSqlValue(item)))))
  return JSON.stringify(value)
}

/** One connection meets no deadlock, but what it has prepared may be out of date. */
function isWorthRetrying(error: unknown): boolean {
  return isConflict(error) || isStalePlan(error) || isLostStatement(error)
}

function closed(): HoldfastError {
  return new HoldfastError('HF_CLOSED', 'The embedded database is closed.')
}

function unreachable(message: string, options: { hint?: string; cause?: unknown } = {}): HoldfastError {
  return new HoldfastError('HF_STORE_UNREACHABLE', message, options)
}

function listenTo(channel: string): string {
  return `listen "${channel.replaceAll('"', '""')}"`
}

function busy(waitMs: number): HoldfastError {
  return unreachable(`The embedded database was busy for ${formatDuration(waitMs)}.`, {
    hint: 'Look for transactions that take long, or use PostgreSQL, which has more than one connection.',
  })
}

function tooLong(timeoutMs: number): HoldfastError {
  return unreachable(
    `A transaction took longer than ${formatDuration(timeoutMs)} and was rolled back: everybody waits for the only connection.`,
    {
      hint: 'Do slow work before or after the transaction, or use PostgreSQL, which has more than one connection.',
    },
  )
}

function transactionOver(what: string): HoldfastError {
  return new HoldfastError('HF_CLOSED', `The transaction is over: could not run ${what} in it.`, {
    hint: 'Await everything that uses the transaction before its function returns.',
  })
}
