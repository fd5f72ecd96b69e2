/**
 * The embedded store: an SQLite database in its own directory, which the processes of one host share. A thread of each
 * process owns its connection, so that neither a transaction nor the disk holds up the event loop. Or tables in the
 * caller's database, see `caller/`.
 */
import { systemClock } from '../../std/clock.ts'
import { Pulses } from '../pulse/pulse.ts'
import { HoldfastError } from '../../errors.ts'
import { Listeners } from '../listeners.ts'
import { asGiven, fn, oneOf, readersFor, readOptions, type Reader } from '../../job/options.ts'
import { refuseTransaction } from '../no-transactions.ts'
import { warnOfNotice } from '../on-notice.ts'
import type { Store } from '../store.ts'
import { storeInDatabase } from './caller/caller-store.ts'
import type { SqliteDatabase } from './caller/handle.ts'
import { readPrefix } from './caller/prefix.ts'
import type { Durability } from './open-database.ts'
import { readDirectoryName } from './files/directory-name.ts'
import { storeMethods } from './store-methods.ts'
import { ThreadLink } from './thread/link.ts'
import type { StoreData } from './thread/protocol.ts'
import { PulsePort } from './thread/pulse-port.ts'

export interface SqliteStoreOptions {
  /** Where the data lives; made if it is not there. @default '.holdfast' */
  readonly directory?: string
  /**
   * Keeps the jobs in tables of your own database instead, so that `{ tx }` and `commit()` cover your tables and jobs in
   * one transaction. Pass an open handle of better-sqlite3, libsql, `node:sqlite` or `@photostructure/sqlite`, of a file in
   * WAL mode. The store opens further connections with the class of the handle, in your thread, and leaves the handle open
   * when it closes. What you commit yourself is as durable as your connection is: in WAL mode better-sqlite3 has
   * `synchronous = normal` unless you set it. Not together with `directory`.
   */
  readonly database?: SqliteDatabase
  /** Put before the name of each table in `database`. @default 'holdfast_' */
  readonly prefix?: string
  /**
   * `full`: nothing acknowledged is lost, whatever happens. `normal`: a power cut or a crash of the operating system can take
   * back what was acknowledged since the last checkpoint; a crash of a process takes back nothing. @default 'full'
   */
  readonly durability?: Durability
  /** Told in one line what does not work as well as it could. @default a warning of the process */
  readonly onNotice?: (line: string) => void
}

const FIELDS = readersFor<SqliteStoreOptions>()({
  directory: readDirectoryName,
  // Judged by what opens it.
  database: asGiven as Reader<SqliteDatabase>,
  prefix: readPrefix,
  // It becomes a part of a statement.
  durability: oneOf<Durability>('full', 'normal'),
  onNotice: fn<(line: string) => void>(),
})

export function sqliteStore(options: SqliteStoreOptions = {}): Store {
  const {
    directory,
    database,
    prefix,
    durability = 'full',
    onNotice = warnOfNotice,
  } = readOptions(options, 'sqliteStore()', FIELDS)
  if (database !== undefined) {
    if (directory !== undefined) throw bothPlaces()
    return storeInDatabase({ database, prefix, durability })
  }
  if (prefix !== undefined) throw prefixAlone()
  const data = { directory: directory ?? '.holdfast', durability }
  return storeOnThread({ ...data, clock: null, maxLook: null, sql: null }, onNotice)
}

/** The store on a thread that is started like this: for tests that set its clock. */
export function storeOnThread(data: StoreData, onNotice: (line: string) => void): Store {
  const listeners = new Listeners()
  const link = new ThreadLink({ data, onNotice, onHint: (hint) => listeners.tell(hint) })
  const pulses = new Pulses({ thread: () => new PulsePort(link), clock: systemClock, onNotice })
  const methods = storeMethods((name, ...args) => link.call(name, ...args))
  return {
    kind: 'embedded',
    ...methods,
    async enqueue(flush) {
      refuseTransaction('embedded', flush)
      return methods.enqueue(flush)
    },
    open: () => link.open(),
    async close() {
      await pulses.close()
      await link.close()
      listeners.clear()
    },
    keepAlive: (worker, leaseMs) => pulses.keepAlive(worker, leaseMs),
    async subscribe(listener) {
      await link.listen(true)
      const remove = listeners.add(listener)
      return async () => {
        if (remove()) await link.listen(false).catch(() => undefined)
      }
    },
  }
}

function bothPlaces(): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', 'sqliteStore() was given a directory and a database.', {
    hint: 'Pass `directory` for a database that only Holdfast uses, or `database` for tables in your own.',
  })
}

function prefixAlone(): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', 'sqliteStore() was given a prefix without a database.', {
    hint: 'Only tables in a database of your own have a prefix: sqliteStore({ database, prefix }).',
  })
}
