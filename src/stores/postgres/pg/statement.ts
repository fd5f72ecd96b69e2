/**
 * What is sent to the database. Values are texts, numbers, booleans and null only (lists travel as array literals, see
 * `literals.ts`), so that the type conversions of `pg` do not matter. All JSON comes back parsed, bigint columns come
 * back as numbers.
 */

export type SqlValue = string | number | boolean | null

export interface Statement {
  /** Names the prepared statement; no two texts share one. */
  readonly name: string
  readonly text: string
  /**
   * Timeout, including the wait for a connection, if that is less than the executor's. A claim that is sent after its
   * worker has given up on it leases jobs that no worker runs.
   */
  readonly timeoutMs?: number
}

/** The executor, or a transaction of it. */
export interface Queryable {
  /** `withinMs`: it is not sent after that time, whatever it waits for. */
  query<Row>(statement: Statement, values: readonly SqlValue[], withinMs?: number): Promise<Row[]>
  /** Runs a script of several statements without values: migrations, and what cannot run in a transaction. */
  script(sql: string): Promise<void>
}
