/**
 * One transaction on one connection: it is committed or rolled back as a whole, or its error says that the outcome is
 * unknown.
 */
import { HoldfastError } from '../../../errors.ts'
import { toError } from '../../../std/text.ts'
import { endsConnection, explain, sqlState } from '../server-errors.ts'
import { unreachable } from './driver.ts'
import type { PgConnection } from './connection.ts'
import type { Queryable, SqlValue, Statement } from './statement.ts'

/** What a handler writes through. It has the shape of a client of `pg`, so that code that takes one can use it. */
export interface TransactionHandle {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: unknown[] }>
}

export interface TransactionParts {
  readonly connection: PgConnection
  readonly timeoutMs: number
  readonly scriptTimeoutMs: number
  readonly run: <Row>(
    connection: PgConnection,
    statement: Statement,
    values: readonly SqlValue[],
  ) => Promise<Row[]>
  /** Whether the whole transaction should be tried again after this error. */
  readonly isWorthRetrying: (error: unknown) => boolean
}

const ROLLBACK_MS = 5_000

export async function transact<T>(
  parts: TransactionParts,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const { connection, timeoutMs, isWorthRetrying } = parts
  const tx = new Transaction(parts)
  // Explicitly, because the default of a database may be another level.
  await connection.run({ text: 'begin isolation level read committed' }, timeoutMs)
  let result: T
  try {
    result = await work(tx)
  } catch (error) {
    tx.over = true
    await rollback(connection)
    // The caller's code may have wrapped or replaced it.
    throw isWorthRetrying(tx.failure) ? tx.failure : error
  }
  tx.over = true
  await commit(connection, timeoutMs, tx)
  return result
}

export class Transaction implements Queryable {
  readonly #parts: TransactionParts
  over = false
  /** The first error that the server gave: from then on the transaction can only be rolled back. */
  failure: Error | undefined

  constructor(parts: TransactionParts) {
    this.#parts = parts
  }

  query<Row>(statement: Statement, values: readonly SqlValue[]): Promise<Row[]> {
    const run = (): Promise<Row[]> => this.#parts.run<Row>(this.#parts.connection, statement, values)
    return this.#do(statement.name, run).catch(rethrow)
  }

  readonly handle: TransactionHandle = {
    // With the driver's own types and unnamed: these statements and their errors belong to the user.
    query: (text, values = []) =>
      this.#do('a statement', () =>
        this.#parts.connection.run({ text, values: [...values] }, this.#parts.timeoutMs),
      ),
  }

  async script(sql: string): Promise<void> {
    const { connection, scriptTimeoutMs } = this.#parts
    await this.#do('a script', () => connection.run({ text: sql }, scriptTimeoutMs)).catch(rethrow)
  }

  async #do<T>(what: string, work: () => Promise<T>): Promise<T> {
    // Its connection may be in another transaction by now.
    if (this.over) throw transactionOver(what)
    try {
      return await work()
    } catch (error) {
      if (error instanceof Error) this.failure ??= error
      throw error
    }
  }
}

async function commit(connection: PgConnection, timeoutMs: number, tx: Transaction): Promise<void> {
  // Lost before the commit was sent, so it was certainly rolled back.
  if (connection.broken !== undefined) throw connection.broken
  let answer
  try {
    answer = await connection.run({ text: 'commit' }, timeoutMs)
  } catch (error) {
    if (sqlState(error) !== undefined && !endsConnection(error)) throw error
    throw unreachable(
      'The connection was lost during a commit: whether the transaction was committed is not known.',
      { hint: 'Check whether its changes are there before you repeat it.', cause: error },
    )
  }
  // This is how the server answers the commit of a transaction in which a statement failed.
  if (answer.command === 'ROLLBACK') {
    throw tx.failure ?? unreachable('The transaction was rolled back by the server.')
  }
}

/** The error that led here matters more than this one: a connection that cannot roll back is given up. */
async function rollback(connection: PgConnection): Promise<void> {
  if (connection.broken !== undefined) return
  try {
    await connection.run({ text: 'rollback' }, ROLLBACK_MS)
  } catch (error) {
    connection.destroy(toError(error))
  }
}

export function rethrow(error: unknown): never {
  throw explain(error)
}

function transactionOver(what: string): HoldfastError {
  return new HoldfastError('HF_CLOSED', `The transaction is over: could not run ${what} in it.`, {
    hint: 'Await everything that uses the transaction before its function returns.',
  })
}
