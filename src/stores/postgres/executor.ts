/**
 * What the store needs of a database, and no more: `pg/` implements it.
 * Values are texts, numbers, booleans and null only (lists travel as array literals, see `literals.ts`), so that no
 * driver's idea of a type gets in between. All JSON comes back parsed, bigint columns come back as numbers.
 */

export type SqlValue = string | number | boolean | null

export interface Statement {
  /** Names the prepared statement; no two texts share one. */
  readonly name: string
  readonly text: string
  /**
   * How long it may take, and wait for a connection before that, where that is less than the executor allows. A claim
   * that is sent when its worker has given up on it leases jobs that nobody runs.
   */
  readonly timeoutMs?: number
}

export interface Queryable {
  query<Row>(statement: Statement, values: readonly SqlValue[]): Promise<Row[]>
  /** Runs a script of several statements without values: migrations, and what cannot run in a transaction. */
  script(sql: string): Promise<void>
}

/** What a handler writes through: the shape of a client of `pg`, so that whatever takes one takes it. */
export interface TransactionHandle {
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: unknown[] }>
}

export interface Transaction extends Queryable {
  readonly handle: TransactionHandle
}

export interface TransactionOptions {
  /**
   * A handler's code runs in it, for as long as that takes: it must not take a connection from claims, settles and
   * enqueues. @default false
   */
  readonly ofHandler?: boolean
}

export interface Executor extends Queryable {
  /** Connects, and tells what it found. Safe to call again. Rejects where the database cannot be used. */
  open(): Promise<ServerFacts>
  /**
   * Runs statements in one transaction on one connection (read committed); commits when `work` resolves, rolls back
   * when it rejects. Deadlocks and serialization failures (40P01, 40001) are tried again as a whole a few times.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, options?: TransactionOptions): Promise<T>
  /**
   * Listens on a channel until stopped. `onGap` is called whenever notices may have been missed (the connection was
   * lost and is back); where the database cannot listen at all, `onGap` is never called and `listening` is false.
   */
  listen(channel: string, onNotice: (payload: string) => void, onGap: () => void): Promise<Listening>
  /** Gives everything back, within a bounded time; later calls reject with HF_CLOSED. Safe to call again. */
  close(): Promise<void>
}

export interface ServerFacts {
  /** As in `server_version_num`: 180004. */
  readonly version: number
}

export interface Listening {
  readonly listening: boolean
  stop(): Promise<void>
}
