/**
 * Our connection to the caller's database. After an I/O error nobody knows what state it is in: then it is closed, and the
 * next call opens another.
 */
import { systemClock } from '../../../std/clock.ts'
import { isDiskFull } from '../disk-full.ts'
import type { Database } from '../driver.ts'
import type { Engine } from '../engine/engine.ts'
import { failed, hasIoError, Runner, type Call, type Ran } from '../engine/runner.ts'
import { LogKeeper } from '../log-keeper.ts'
import { storeError } from '../sqlite-errors.ts'
import type { StepRunner } from '../step-queue.ts'
import type { Library } from './library.ts'

export interface CallerConnectionParts {
  readonly library: Library
  readonly newEngine: (database: Database) => Engine
  readonly lockHolder: () => string | null
}

interface Opened {
  readonly database: Database
  readonly engine: Engine
  readonly runner: Runner
  /** None if the caller writes the log back. */
  readonly log: LogKeeper | null
}

export class CallerConnection implements StepRunner {
  readonly #parts: CallerConnectionParts
  #opened: Opened | undefined
  /** Of the connection before: what it rescued is still to be told. */
  #engineBefore: Engine | undefined
  #opens = 0

  constructor(parts: CallerConnectionParts) {
    this.#parts = parts
  }

  get database(): Database {
    return this.#open().database
  }

  run<C extends Call>(calls: readonly C[]): Ran<C> {
    let ran
    try {
      ran = this.#open().runner.run(calls)
    } catch (cause) {
      return failed(calls, storeError(cause, this.#parts.lockHolder))
    }
    if (hasIoError(ran)) {
      this.#engineBefore = this.#opened?.engine
      this.close()
    }
    return ran
  }

  tend(): Promise<void> | undefined {
    return this.#opened?.log?.tend()
  }

  /** Number of the last commit of other connections, and of which of ours; undefined if it cannot be read now. */
  dataVersion(): string | undefined {
    try {
      const { engine } = this.#open()
      const row = engine.db.get<{ data_version: number }>('dataVersion')
      return row === undefined ? undefined : `${this.#opens}.${row.data_version}`
    } catch {
      // Another process recovers the log, or worse, which the next call will say.
      return undefined
    }
  }

  #open(): Opened {
    this.#opened ??= this.#connect()
    return this.#opened
  }

  #connect(): Opened {
    const { library, newEngine, lockHolder } = this.#parts
    const { database, keepsLog } = library.connect()
    const engine = newEngine(database)
    if (this.#engineBefore !== undefined) engine.succeed(this.#engineBefore)
    this.#engineBefore = undefined
    this.#opens++
    const runner = new Runner({ database, engine, lockHolder, isDiskFull: () => isDiskFull(library.path) })
    const log = keepsLog ? new LogKeeper(database, library.path, systemClock) : null
    return { database, engine, runner, log }
  }

  close(): void {
    const opened = this.#opened
    this.#opened = undefined
    opened?.log?.stop()
    try {
      opened?.database.close()
    } catch {
      // A disk that fails: the library lets go of the files all the same.
    }
  }
}
