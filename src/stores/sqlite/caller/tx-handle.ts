/** What callers hold inside a transaction (`{ tx }`), and the connection behind it. */
import { HoldfastError } from '../../../errors.ts'
import type { Random } from '../../../std/random.ts'
import { messageOf } from '../../../std/text.ts'
import { isHandle, isInTransaction, type SqliteDatabase } from './handle.ts'
import type { Library } from './library.ts'

/** The handle of a library or of Drizzle, with an open transaction on our file. */
export function handleOf(tx: unknown, library: Library): SqliteDatabase {
  const handle = isHandle(tx) ? tx : drizzleClient(tx)
  if (handle === undefined) throw unknownHandle()
  let isOpen
  try {
    if (!library.knows(handle)) throw elsewhere()
    isOpen = isInTransaction(handle)
  } catch (error) {
    if (error instanceof HoldfastError) throw error
    throw refuse(`{ tx } cannot be used: ${messageOf(error)}.`, 'Pass an open database.', error)
  }
  if (isOpen) return handle
  throw refuse(
    '{ tx } is a database on which no transaction is open: what is written through it counts at once, with or without the rest.',
    'Begin one first. A transaction of better-sqlite3 or of Drizzle on it ends before an await: use job.enqueueSync() there.',
  )
}

/** Drizzle's transaction, and its database, have a session that has the client of the library. */
function drizzleClient(tx: unknown): SqliteDatabase | undefined {
  const client = field(field(tx, 'session'), 'client')
  return isHandle(client) ? client : undefined
}

interface KyselyTransaction {
  executeQuery(query: object): PromiseLike<unknown>
}

export function isKysely(tx: unknown): tx is KyselyTransaction {
  return typeof field(tx, 'executeQuery') === 'function' && typeof field(tx, 'getExecutor') === 'function'
}

/** The last look at each transaction. */
const looks = new WeakMap<object, Promise<unknown>>()

/** One after the other: the savepoints of looks that cross would be nested in each other. */
export function handleOfKysely(
  tx: KyselyTransaction,
  library: Library,
  random: Random,
): Promise<SqliteDatabase> {
  const look = (looks.get(tx) ?? Promise.resolve()).then(() => lookAt(tx, library, random))
  looks.set(
    tx,
    look.catch(() => undefined),
  )
  return look
}

/**
 * Kysely keeps its connection to itself. So a savepoint is made through Kysely and released through the caller's handle:
 * that works if, and only if, they are the same connection.
 */
async function lookAt(tx: KyselyTransaction, { handle }: Library, random: Random): Promise<SqliteDatabase> {
  if (field(tx, 'isTransaction') !== true)
    throw refuse(
      '{ tx } is a Kysely instance outside of a transaction: what is written through it counts at once, with or without the rest.',
      'Use db.transaction().execute(async (tx) => …), and pass the tx that it gives.',
    )
  const name = `holdfast_${random.uint32()}`
  await tx.executeQuery(compiled(`savepoint ${name}`))
  try {
    handle.exec(`release ${name}`)
    return handle
  } catch (error) {
    await tx.executeQuery(compiled(`release ${name}`))
    throw refuse(
      '{ tx } is a transaction of Kysely on another connection than the one that sqliteStore() was given.',
      'Give both the same handle: new SqliteDialect({ database }) and sqliteStore({ database }).',
      error,
    )
  }
}

export function asynchronousKysely(): HoldfastError {
  return refuse(
    '{ tx } is a transaction of Kysely, which is asynchronous.',
    'Use await job.enqueue(input, { tx }).',
  )
}

/** What `CompiledQuery.raw` makes. Plugins keep what they know of a query by its queryId, an object. */
function compiled(sql: string): object {
  const query = { kind: 'RawNode', sqlFragments: [sql], parameters: [] }
  return { sql, parameters: [], query, queryId: { queryId: 'holdfast' } }
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}

function unknownHandle(): HoldfastError {
  return refuse(
    '{ tx } is no transaction that this store knows.',
    'Pass the handle of better-sqlite3, libsql or node:sqlite on which a transaction is open, or the transaction that Drizzle or Kysely gives.',
  )
}

function elsewhere(): HoldfastError {
  return refuse(
    '{ tx } is a transaction on another database, or of another library, than the one that sqliteStore() was given.',
    'Use the library that made the database of sqliteStore(), on the same file.',
  )
}

function refuse(message: string, hint: string, cause?: unknown): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', message, cause === undefined ? { hint } : { hint, cause })
}
