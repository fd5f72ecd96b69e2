/** The facet of the contract for transactions of the callers' own, and `commit()` on a connection of ours. */
import { HoldfastError } from '../../../errors.ts'
import { sleep, systemClock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import { systemRandom } from '../../../std/random.ts'
import { checkSettles } from '../../settles.ts'
import type {
  CommitRequest,
  CompletedSettlement,
  EnqueueAnswer,
  Flush,
  Note,
  SettleRequest,
  Transactions,
  WakeUp,
} from '../../store.ts'
import type { Database } from '../driver.ts'
import type { SqlTexts } from '../engine/db.ts'
import { listNotes } from '../engine/book.ts'
import { enqueue } from '../engine/enqueue.ts'
import type { Engine } from '../engine/engine.ts'
import { settleAll } from '../engine/settle.ts'
import { storeError } from '../sqlite-errors.ts'
import { adapt, isInTransaction, toldTransaction, type SqliteDatabase } from './handle.ts'
import { installInside } from './install.ts'
import type { Library, OwnConnection } from './library.ts'
import { beginImmediate, rollBack } from '../lock.ts'
import { asynchronousKysely, handleOf, handleOfKysely, isKysely } from './tx-handle.ts'

export interface TransactionsParts {
  readonly library: Library
  readonly texts: SqlTexts
  readonly newEngine: (database: Database) => Engine
  readonly open: () => Promise<void>
  /** Whether the tables are there for good. */
  readonly isInstalled: () => boolean
  readonly refuseWhenClosed: () => void
  readonly tell: (hints: readonly WakeUp[]) => void
  readonly lockHolder: () => string | null
}

interface OnHandle {
  readonly database: Database
  readonly engine: Engine
}

/**
 * How long a handler may hold the only write lock of the database. While its function waits for something, a write on
 * the caller's own handle blocks the event loop for that connection's whole busy timeout, because the commit cannot
 * proceed either.
 */
const WRITE_MS = 1_000
/** How often, and how many times, it is looked whether the caller's transaction is over. */
const OVER_MS = 5
const OVER_LOOKS = 200
const DISCARD_MS = 10
const MOST_DISCARDS = 6_000

export class CallerTransactions implements Transactions {
  readonly #parts: TransactionsParts
  /** Prepared statements stay with their connection. */
  readonly #engines = new WeakMap<SqliteDatabase, OnHandle>()
  /** The end of the last commit: there is one write lock, and it is given in order. */
  #commits: Promise<unknown> = Promise.resolve()

  constructor(parts: TransactionsParts) {
    this.#parts = parts
  }

  async enqueue(flush: Flush): Promise<readonly EnqueueAnswer[]> {
    return this.#inside(await this.#handle(flush.tx), (engine) => enqueue(engine, flush))
  }

  enqueueSync(flush: Flush): readonly EnqueueAnswer[] {
    const { tx } = flush
    if (isKysely(tx)) throw asynchronousKysely()
    return this.#inside(handleOf(tx, this.#parts.library), (engine) => enqueue(engine, flush))
  }

  async listNotes(kind: string, tx: unknown): Promise<readonly Note[]> {
    return this.#inside(await this.#handle(tx), (engine) => listNotes(engine, kind))
  }

  commit(request: CommitRequest, write: (tx: unknown) => Promise<CompletedSettlement>): Promise<void> {
    const done = this.#commits.then(() => this.#commit(request, write))
    this.#commits = done.catch(() => undefined)
    return done
  }

  /** Resolves when no commit is in progress. */
  async idle(): Promise<void> {
    await this.#commits
  }

  /** The handle is checked again in `#inside`: a transaction that is not awaited may have ended by then. */
  async #handle(tx: unknown): Promise<SqliteDatabase> {
    const { library } = this.#parts
    return isKysely(tx) ? handleOfKysely(tx, library, systemRandom) : handleOf(tx, library)
  }

  /** All of a step or nothing: the caller decides whether the transaction continues. */
  #inside<T>(handle: SqliteDatabase, step: (engine: Engine) => T): T {
    const { library, texts, isInstalled, refuseWhenClosed } = this.#parts
    refuseWhenClosed()
    const { database, engine } = this.#on(handleOf(handle, library))
    database.exec('savepoint holdfast_step')
    try {
      // A synchronous enqueue can be the first thing that this process does with the store.
      if (!isInstalled()) installInside(database, texts)
      const answer = step(engine.begin())
      engine.writeCounts()
      database.exec('release holdfast_step')
      this.#tellWhenOver(handle, engine.takeHints())
      return answer
    } catch (error) {
      engine.rolledBack()
      undoStep(database)
      throw error
    }
  }

  #on(handle: SqliteDatabase): OnHandle {
    let on = this.#engines.get(handle)
    if (on === undefined) {
      const database = adapt(handle)
      on = { database, engine: this.#parts.newEngine(database) }
      this.#engines.set(handle, on)
    }
    return on
  }

  /**
   * Wakes workers of this process as soon as the caller's transaction has ended, if that is within a second. Otherwise,
   * and in other processes, the regular look for news finds the jobs. If it was rolled back, the workers find nothing.
   */
  #tellWhenOver(handle: SqliteDatabase, hints: readonly WakeUp[]): void {
    if (hints.length === 0) return
    const look = (left: number): void => {
      if (isOver(handle)) this.#parts.tell(hints)
      else if (left > 0) systemClock.after(OVER_MS, () => look(left - 1))
    }
    systemClock.after(0, () => look(OVER_LOOKS))
  }

  async #commit(request: CommitRequest, write: (tx: unknown) => Promise<CompletedSettlement>): Promise<void> {
    const { library, open, newEngine, tell } = this.#parts
    await open()
    // A connection for this commit alone, which takes 0.2 ms: what `write` leaves behind (a promise, a timer) finds it
    // closed, and cannot write outside the transaction or into another one.
    const connection = library.connect()
    const { database } = connection
    try {
      await this.#known(() => beginImmediate(database))
      const settlement = await withDeadline(systemClock, WRITE_MS, write(connection.handle), tooLong)
      await this.#known(() => {
        const engine = newEngine(database)
        settleIn(engine, connection, request, settlement)
        engine.writeCounts()
        database.exec('commit')
        tell(engine.takeHints())
      })
    } finally {
      void discard(database)
    }
  }

  /** What SQLite throws in our own statements becomes an error of ours; what `write` throws comes out as it is. */
  async #known(work: () => Promise<void> | void): Promise<void> {
    try {
      await work()
    } catch (error) {
      throw storeError(error, this.#parts.lockHolder)
    }
  }
}

function settleIn(
  engine: Engine,
  { handle }: OwnConnection,
  { worker, token, position, forget, runMs }: CommitRequest,
  settlement: CompletedSettlement,
): void {
  if (!isInTransaction(handle))
    throw new HoldfastError('HF_BAD_OPTION', 'The transaction of commit() was ended by what runs in it.', {
      hint: 'Holdfast commits it, and rolls it back if the function throws: leave out commit and rollback there.',
    })
  const settle: SettleRequest = { token, position, settlement, runMs: runMs(), forget }
  checkSettles([settle])
  const [answer] = settleAll(engine.begin(), worker, [settle])
  if (answer === 'written') return
  throw new HoldfastError(
    'HF_LEASE_LOST',
    'The lease of this job is gone, so nothing of what its handler wrote was committed.',
  )
}

function tooLong(): HoldfastError {
  return new HoldfastError(
    'HF_ATTEMPT_TIMEOUT',
    `The function of commit() took longer than ${WRITE_MS} ms, so nothing of what it wrote was committed.`,
    {
      hint: 'It holds the only write lock of the database: only write in it, and do what waits before commit().',
    },
  )
}

/**
 * Rolls back what is not committed, and closes. better-sqlite3 does neither while rows of a statement are being read: then
 * it is tried until that has ended.
 */
async function discard(database: Database): Promise<void> {
  for (let tries = 0; tries < MOST_DISCARDS; tries++) {
    rollBack(database)
    try {
      return database.close()
    } catch {
      await sleep(systemClock, DISCARD_MS)
    }
  }
}

function undoStep(database: Database): void {
  try {
    database.exec('rollback to holdfast_step; release holdfast_step')
  } catch {
    // The error has ended the whole transaction, or it was the savepoint that could not be made.
  }
}

/** False if the library does not tell. */
function isOver(handle: SqliteDatabase): boolean {
  try {
    return toldTransaction(handle) === false
  } catch {
    // Closed.
    return true
  }
}
