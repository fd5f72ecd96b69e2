/**
 * The connection of the store's thread. After an I/O error nobody knows what state it is in, and a database that was deleted
 * takes writes that nobody will find: then it is closed, and opened and checked again with the next call.
 */
import { statSync, type BigIntStats } from 'node:fs'
import { HoldfastError } from '../../../errors.ts'
import { systemClock } from '../../../std/clock.ts'
import { systemRandom } from '../../../std/random.ts'
import { isRoomGone } from '../disk-full.ts'
import type { Database, Driver } from '../driver.ts'
import { Db, type SqlTexts } from '../engine/db.ts'
import { Engine } from '../engine/engine.ts'
import { failed, hasIoError, Runner, type Call, type Ran } from '../engine/runner.ts'
import { prepareDirectory, type StoreFiles } from '../files/directory.ts'
import { lockHolder } from '../files/lock-holder.ts'
import { refuseDamagedLog } from '../files/log-check.ts'
import { deletedLog, refuseMissingLog, watchLog, type LogFile } from '../files/log-file.ts'
import { isProcessGone, ownProcess } from '../files/process-identity.ts'
import { isSameFile } from '../files/same-file.ts'
import { openDatabase } from '../open-database.ts'
import { storeError } from '../sqlite-errors.ts'
import type { StepRunner } from '../step-queue.ts'
import { Bell } from './bell.ts'
import { LogKeeper } from '../log-keeper.ts'
import { answerOthers } from './open-here.ts'
import type { StoreData } from './protocol.ts'
import { SharedClock } from './shared-clock.ts'

export interface ConnectionParts {
  readonly driver: Driver
  readonly data: StoreData
  readonly sql: SqlTexts
  readonly onNotice: (line: string) => void
  /** Told when another process rings. */
  readonly onBell: () => void
  /** Told when the database was opened again. */
  readonly onReopened: () => void
}

interface Opened {
  readonly files: StoreFiles
  readonly identity: BigIntStats
  readonly logFile: () => LogFile
  readonly database: Database
  readonly engine: Engine
  readonly runner: Runner
  readonly bell: Bell
  readonly log: LogKeeper
  readonly stopAnswering: () => void
}

/** How often it is looked whether the files are still there, at most: it takes a few microseconds. */
const CHECK_MS = 100

export class Connection implements StepRunner {
  readonly #parts: ConnectionParts
  #opened: Opened | undefined
  /** Of the connection before: what it rescued is still to be told. */
  #engineBefore: Engine | undefined
  /** What the next call is told: the database was found to be gone. */
  #gone: HoldfastError | undefined
  #listens = false
  #checkedMs = -Infinity

  constructor(parts: ConnectionParts) {
    this.#parts = parts
  }

  open(): void {
    this.#opened ??= this.#open()
  }

  run<C extends Call>(calls: readonly C[]): Ran<C> {
    try {
      this.#tellGone()
      this.open()
    } catch (error) {
      return failed(calls, error)
    }
    const ran = this.#opened?.runner.run(calls) ?? failed(calls, undefined)
    // Before anything is answered that would be in a file without a name.
    if (systemClock.monotonicMs() >= this.#checkedMs + CHECK_MS && this.check()) {
      const error = this.#gone
      this.#gone = undefined
      return failed(calls, error)
    }
    if (hasIoError(ran)) this.#giveUp()
    return ran
  }

  tend(): Promise<void> | undefined {
    return this.#opened?.log.tend()
  }

  /** Number of the last commit of other connections; undefined if it cannot be read now. */
  dataVersion(): number | undefined {
    try {
      return this.#opened?.engine.db.get<{ data_version: number }>('dataVersion')?.data_version
    } catch {
      // Busy while another process recovers the log, or worse, which the next call will say.
      return undefined
    }
  }

  /** Whether the database, or its log, was deleted or replaced. The next call says so, unless nothing is lost. */
  check(): boolean {
    this.#checkedMs = systemClock.monotonicMs()
    const opened = this.#opened
    if (opened === undefined) return false
    const { files, identity, logFile, database } = opened
    if (!isSameFile(files.database, identity)) this.#gone = deleted(files.database)
    else if (logFile() === 'same') return false
    // Of a log that was replaced nothing can be saved: others may have written into the new one.
    else if (logFile() === 'other' || !isLogSaved(database)) this.#gone = deletedLog(files.database)
    else
      this.#parts.onNotice(`${files.database}-wal was deleted; nothing is lost: it was written back in time.`)
    this.#giveUp()
    return this.#gone !== undefined
  }

  ring(): void {
    this.#opened?.bell.ring()
  }

  listen(on: boolean): void {
    this.#listens = on
    if (on) this.#opened?.bell.listen(this.#parts.onBell)
    else this.#opened?.bell.deafen()
  }

  close(): void {
    if (this.#opened === undefined) return
    // Some libraries leave the log behind when statements are still there. If others use the file, they do it later.
    try {
      this.#opened.database.exec('pragma wal_checkpoint(truncate)')
    } catch {
      // Nothing is lost: it is read at the next opening.
    }
    this.#end(this.#opened)
    this.#opened = undefined
  }

  #open(): Opened {
    const { driver, data, sql, onNotice, onBell } = this.#parts
    const files = prepareDirectory(data.directory, onNotice)
    const stopAnswering = answerOthers(files.database, driver.library)
    let database: Database | undefined
    try {
      refuseMissingLog(files.database)
      if (data.durability === 'full') refuseDamagedLog(files.database)
      database = openDatabase(driver, files.database, data.durability, sql.tables)
      const bell = new Bell(files.bell)
      bell.ringFirst()
      const identity = statSync(files.database, { bigint: true })
      const logFile = watchLog(files.database)
      const engine = this.#newEngine(database)
      const runner = new Runner({
        database,
        engine,
        lockHolder: () => lockHolder(files.database),
        isDiskFull: () => isRoomGone(files.database),
      })
      const log = new LogKeeper(database, files.database, systemClock)
      if (this.#listens) bell.listen(onBell)
      return { files, identity, logFile, database, engine, runner, bell, log, stopAnswering }
    } catch (error) {
      database?.close()
      stopAnswering()
      throw storeError(
        error,
        () => lockHolder(files.database),
        () => isRoomGone(files.database),
      )
    }
  }

  #newEngine(database: Database): Engine {
    const { data, sql } = this.#parts
    const engine = new Engine({
      db: new Db(database, sql.statements),
      clock: data.clock === null ? systemClock : new SharedClock(data.clock),
      random: systemRandom,
      processes: { own: ownProcess(), isGone: isProcessGone },
      ownsFile: true,
    })
    if (this.#engineBefore !== undefined) {
      engine.succeed(this.#engineBefore)
      this.#engineBefore = undefined
      this.#parts.onReopened()
    }
    return engine
  }

  #tellGone(): void {
    const error = this.#gone
    if (error === undefined) return
    this.#gone = undefined
    throw error
  }

  #giveUp(): void {
    if (this.#opened === undefined) return
    this.#engineBefore = this.#opened.engine
    this.#end(this.#opened)
    this.#opened = undefined
  }

  #end({ database, bell, log, stopAnswering }: Opened): void {
    log.stop()
    try {
      database.close()
    } catch {
      // A disk that fails: the library lets go of the files all the same.
    }
    bell.close()
    stopAnswering()
  }
}

/** Writes what the log holds into the database. False if other processes still have that log open: they must not go on. */
function isLogSaved(database: Database): boolean {
  try {
    database.exec('pragma wal_checkpoint(truncate)')
    const row = database.prepare('pragma journal_mode = delete').get()
    return (row as { readonly journal_mode: string }).journal_mode === 'delete'
  } catch {
    return false
  }
}

function deleted(database: string): HoldfastError {
  return new HoldfastError(
    'HF_STORE_MISSING',
    `${database} was deleted or replaced while this process used it.`,
    {
      hint: 'The jobs in it are gone with it. The next call opens what is there now, or makes an empty store: enqueue again.',
    },
  )
}
