/**
 * The store in the caller's database: tables with a prefix, on connections of the caller's own library in the caller's
 * thread. Two SQLite libraries of one process on one file lose data without an error, so it can be no other.
 *
 * Steps run on one connection of ours, `commit()` on another, and `{ tx }` on the caller's. Nothing renews leases while the
 * event loop is blocked: handlers that block it for long need a longer lease.
 */
import { HoldfastError } from '../../../errors.ts'
import { systemClock } from '../../../std/clock.ts'
import { systemRandom } from '../../../std/random.ts'
import { Listeners } from '../../listeners.ts'
import type { Store, WakeUp } from '../../store.ts'
import type { Database } from '../driver.ts'
import { Db, PREFIX, readSql, type SqlTexts } from '../engine/db.ts'
import { Engine, type EngineClock } from '../engine/engine.ts'
import type { StepAnswer, StepArgs, StepName } from '../engine/steps.ts'
import { lockHolder } from '../files/lock-holder.ts'
import { isProcessGone, ownProcess } from '../files/process-identity.ts'
import type { Durability } from '../open-database.ts'
import { storeError } from '../sqlite-errors.ts'
import { storeMethods } from '../store-methods.ts'
import { toldTransaction, type SqliteDatabase } from './handle.ts'
import { install, installNow } from './install.ts'
import { Library } from './library.ts'
import { CommitWatcher } from './commit-watcher.ts'
import { CallerConnection } from './connection.ts'
import { StepQueue } from '../step-queue.ts'
import { CallerTransactions } from './transactions.ts'

export interface InDatabase {
  readonly database: SqliteDatabase
  readonly prefix?: string | undefined
  readonly durability?: Durability
}

/** For tests. */
export interface InDatabaseWorld {
  readonly clock?: EngineClock
  /** Maximum number of jobs that a list looks at in one step. */
  readonly maxLook?: number
}

/** The event loop stands still meanwhile, so less than in a thread. */
const MAX_LOOK = 1_000

export function storeInDatabase(options: InDatabase, world: InDatabaseWorld = {}): Store {
  const { database, prefix = PREFIX, durability = 'full' } = options
  const store = new CallerStore(
    new Library(database, durability),
    readSql(prefix),
    world.clock ?? systemClock,
  )
  const methods = storeMethods((name, ...args) => store.call(name, ...args), world.maxLook ?? MAX_LOOK)
  const { notes } = methods
  return {
    kind: 'sqlite',
    ...methods,
    enqueue: (flush) => (flush.tx === undefined ? methods.enqueue(flush) : store.transactions.enqueue(flush)),
    notes: {
      ...notes,
      list: (kind, tx) => (tx === undefined ? notes.list(kind) : store.transactions.listNotes(kind, tx)),
    },
    open: () => store.open(),
    close: () => store.close(),
    subscribe: (listener) => store.subscribe(listener),
    transactions: store.transactions,
  }
}

interface Opened {
  readonly connection: CallerConnection
  readonly queue: StepQueue
  readonly watcher: CommitWatcher
}

class CallerStore {
  readonly transactions: CallerTransactions
  readonly #library: Library
  readonly #texts: SqlTexts
  readonly #clock: EngineClock
  readonly #listeners = new Listeners()
  #isInstalled = false
  #installing: Promise<void> | undefined
  #opening: Promise<Opened> | undefined
  #closing: Promise<void> | undefined

  constructor(library: Library, texts: SqlTexts, clock: EngineClock) {
    this.#library = library
    this.#texts = texts
    this.#clock = clock
    this.transactions = new CallerTransactions({
      library,
      texts,
      newEngine: (database) => this.#newEngine(database),
      open: () => this.open(),
      isInstalled: () => this.#isInstalled,
      refuseWhenClosed: () => this.#refuseWhenClosed(),
      tell: (hints) => this.#tell(hints),
      lockHolder: () => this.#lockHolder(),
    })
  }

  /** Safe to call again; after a failure it is tried again. */
  async open(): Promise<void> {
    await this.#opened()
  }

  async call<Name extends StepName>(name: Name, ...args: StepArgs<Name>): Promise<StepAnswer<Name>> {
    const opened = await this.#opened()
    if (!this.#isInstalled) await this.#installed(opened)
    return opened.queue.call(name, ...args)
  }

  async subscribe(listener: (hint: WakeUp) => void): Promise<() => Promise<void>> {
    const { watcher } = await this.#opened()
    const remove = this.#listeners.add(listener)
    watcher.start()
    return async () => {
      if (remove()) watcher.stop()
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const opened = await this.#opening?.catch(() => undefined)
    this.#listeners.clear()
    await this.transactions.idle()
    await this.#installing?.catch(() => undefined)
    if (opened === undefined) return
    const { connection, queue, watcher } = opened
    watcher.stop()
    await queue.idle()
    connection.close()
  }

  async #opened(): Promise<Opened> {
    this.#refuseWhenClosed()
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined
      throw storeError(error, () => this.#lockHolder())
    })
    const opened = await this.#opening
    this.#refuseWhenClosed()
    return opened
  }

  /** Creates the tables if the write lock is free. Otherwise the first step does, or the caller's transaction. */
  async #open(): Promise<Opened> {
    const connection = new CallerConnection({
      library: this.#library,
      newEngine: (database) => this.#newEngine(database),
      lockHolder: () => this.#lockHolder(),
    })
    try {
      this.#isInstalled = installNow(connection.database, this.#texts)
    } catch (error) {
      connection.close()
      throw error
    }
    const queue = new StepQueue(connection, (hints) => this.#tell(hints))
    const news = async (): Promise<void> => this.#tell(await this.call('news'))
    const watcher = new CommitWatcher(() => connection.dataVersion(), news)
    return { connection, queue, watcher }
  }

  async #installed({ connection }: Opened): Promise<void> {
    this.#installing ??= install(connection.database, this.#texts).catch((error: unknown) => {
      this.#installing = undefined
      throw storeError(error, () => this.#lockHolder())
    })
    await this.#installing
    this.#isInstalled = true
    this.#refuseWhenClosed()
  }

  #newEngine(database: Database): Engine {
    return new Engine({
      db: new Db(database, this.#texts.statements),
      clock: this.#clock,
      random: systemRandom,
      processes: { own: ownProcess(), isGone: isProcessGone },
    })
  }

  #tell(hints: readonly WakeUp[]): void {
    for (const hint of hints) this.#listeners.tell(hint)
  }

  #refuseWhenClosed(): void {
    if (this.#closing !== undefined) throw new HoldfastError('HF_CLOSED', 'The SQLite store is closed.')
  }

  #lockHolder(): string | null {
    try {
      if (toldTransaction(this.#library.handle) === true)
        return 'a transaction of this program, on the handle that sqliteStore() was given (pass it on as { tx })'
    } catch {
      // Closed meanwhile.
    }
    return lockHolder(this.#library.path)
  }
}
