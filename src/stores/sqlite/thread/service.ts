/**
 * The thread's side: owns the connection and runs what the main thread asks for. What arrives while a transaction waits for
 * the disk shares the next one.
 */
import { receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { systemClock } from '../../../std/clock.ts'
import { systemRandom } from '../../../std/random.ts'
import { threadMs } from '../../../std/thread-clock.ts'
import { keepPulses } from '../../pulse/keeper.ts'
import { loadDriver, type Database } from '../driver.ts'
import { Db, readSql, type SqlTexts } from '../engine/db.ts'
import { Engine } from '../engine/engine.ts'
import { Runner, type Call } from '../engine/runner.ts'
import type { StepName } from '../engine/steps.ts'
import { refuseIfOpen } from '../files/already-open.ts'
import { prepareDirectory, type StoreFiles } from '../files/directory.ts'
import { lockHolder } from '../files/lock-holder.ts'
import { isProcessGone, ownProcess } from '../files/process-identity.ts'
import { openDatabase } from '../open-database.ts'
import { Bell } from './bell.ts'
import { sendError, type Answer, type FromStore, type ThreadData, type ToStore } from './protocol.ts'
import { SharedClock } from './shared-clock.ts'

interface IdCall extends Call {
  readonly id: number
}

interface Opened {
  readonly files: StoreFiles
  readonly database: Database
  readonly sql: SqlTexts
}

/** How long a call waits for other processes that write. */
const LOCK_MS = 5_000
const LEAST_WAIT_MS = 0.3
const MOST_WAIT_MS = 4
/** How often it looks for commits of other processes whose bell was not heard. */
const LOOK_MS = 1_000
/** Steps whose answer depends on how far a list may look. */
const LISTS: ReadonlySet<StepName> = new Set(['list', 'deadGroups', 'change'])

export class StoreService {
  readonly #port: MessagePort
  readonly #data: ThreadData
  readonly #database: Database
  readonly #runner: Runner
  readonly #engine: Engine
  readonly #bell: Bell
  #calls: IdCall[] = []
  #listens = false
  #stopLooking: (() => void) | undefined
  #version = 0

  /** Opens the store and tells the main thread how that went. */
  static async start(port: MessagePort, data: ThreadData): Promise<void> {
    const tell = (message: FromStore): void => port.postMessage(message)
    try {
      const driver = await loadDriver()
      const files = prepareDirectory(data.directory, (line) => tell({ type: 'notice', line }))
      refuseIfOpen(files.database)
      const sql = data.sql ?? readSql()
      const database = openDatabase(driver, files.database, data.durability, sql.tables)
      const service = new StoreService(port, data, { files, database, sql })
      port.on('message', (message: ToStore) => service.#receive(message))
      tell({ type: 'opened' })
    } catch (error) {
      tell({ type: 'failed', error: sendError(error) })
      port.close()
    }
  }

  private constructor(port: MessagePort, data: ThreadData, { files, database, sql }: Opened) {
    this.#port = port
    this.#data = data
    this.#database = database
    this.#engine = new Engine({
      db: new Db(database, sql.statements),
      clock: data.clock === null ? systemClock : new SharedClock(data.clock),
      random: systemRandom,
      processes: { own: ownProcess(), isGone: isProcessGone },
    })
    this.#runner = new Runner({
      database,
      engine: this.#engine,
      waitForLock: waiting(),
      lockHolder: () => lockHolder(files.database),
    })
    this.#bell = new Bell(files.bell)
    this.#version = this.#dataVersion()
  }

  /** One message, and all that arrived behind it. */
  #receive(first: ToStore): void {
    let isClosing = this.#take(first)
    for (;;) {
      const next = receiveMessageOnPort(this.#port) as { readonly message: ToStore } | undefined
      if (next === undefined) break
      isClosing = this.#take(next.message) || isClosing
    }
    this.#runCalls()
    if (isClosing) this.#close()
  }

  /** Whether the store is to be closed. */
  #take(message: ToStore): boolean {
    switch (message.type) {
      case 'call': {
        const { id, name, args } = message
        const { maxLook } = this.#data
        this.#calls.push({ id, name, args: maxLook !== null && LISTS.has(name) ? [...args, maxLook] : args })
        return false
      }
      case 'listen':
        this.#listen(message.on)
        return false
      case 'pulse':
        keepPulses({ renew: (worker) => this.#renew(worker), close: () => Promise.resolve() }, message.port)
        return false
      case 'close':
        return true
    }
  }

  #runCalls(): void {
    const calls = this.#calls
    if (calls.length === 0) return
    this.#calls = []
    const { outcomes, hints } = this.#runner.run(calls)
    const answers = outcomes.map(
      ([{ id }, outcome]): Answer =>
        'value' in outcome ? { id, value: outcome.value } : { id, error: sendError(outcome.error) },
    )
    this.#tell({ type: 'answers', answers, hints })
    if (hints.length > 0) this.#bell.ring()
  }

  /** A lease is renewed from here while the main loop is blocked. */
  async #renew(worker: string): Promise<boolean> {
    const { outcomes } = this.#runner.run([{ name: 'renew', args: [worker] }])
    const [, outcome] = outcomes[0] ?? []
    if (outcome === undefined || 'error' in outcome) throw outcome?.error ?? new Error('A renewal was not run.')
    return outcome.value === true
  }

  #listen(on: boolean): void {
    if (on === this.#listens) return
    this.#listens = on
    if (on) {
      this.#bell.listen(() => this.#look())
      this.#lookLater()
    } else {
      this.#bell.deafen()
      this.#stopLooking?.()
    }
  }

  #lookLater(): void {
    this.#stopLooking = systemClock.after(LOOK_MS, () => {
      this.#look()
      this.#lookLater()
    })
  }

  /** Another process has committed: tells what somebody here may wait for. Our own commits do not change the version. */
  #look(): void {
    const version = this.#dataVersion()
    if (version === this.#version) return
    this.#version = version
    const { outcomes } = this.#runner.run([{ name: 'news', args: [] }])
    const [, outcome] = outcomes[0] ?? []
    if (outcome !== undefined && 'value' in outcome)
      this.#tell({ type: 'hints', hints: outcome.value as ReturnType<Engine['takeHints']> })
  }

  #dataVersion(): number {
    return this.#engine.db.get<{ data_version: number }>('dataVersion')?.data_version ?? 0
  }

  #close(): void {
    this.#listen(false)
    this.#bell.close()
    // Some libraries leave the log behind when statements are still there. If others use the file, they do it later.
    try {
      this.#database.exec('pragma wal_checkpoint(truncate)')
    } catch {
      // Nothing is lost: it is read at the next opening.
    }
    this.#database.close()
    this.#port.close()
  }

  #tell(message: FromStore): void {
    this.#port.postMessage(message)
  }
}

/**
 * Waits for the write lock in short steps of random length. SQLite's own waiting grows to 100 ms, so that whoever had the
 * lock last gets it again, and a process can starve.
 */
function waiting(): (tries: number) => boolean {
  const cell = new Int32Array(new SharedArrayBuffer(4))
  let sinceMs = 0
  return (tries) => {
    if (tries === 1) sinceMs = threadMs()
    if (threadMs() - sinceMs > LOCK_MS) return false
    Atomics.wait(cell, 0, 0, LEAST_WAIT_MS + systemRandom.float() * (MOST_WAIT_MS - LEAST_WAIT_MS))
    return true
  }
}
