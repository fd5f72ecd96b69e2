/**
 * The thread's side: owns the connection and runs what the main thread asks for. What arrives while a transaction waits for
 * the disk shares the next one.
 */
import type { MessagePort } from 'node:worker_threads'
import { systemClock } from '../../../std/clock.ts'
import { systemRandom } from '../../../std/random.ts'
import type { WorkerId } from '../../../job/ids.ts'
import { keepPulses } from '../../pulse/keeper.ts'
import type { WakeUp } from '../../store.ts'
import { loadDriver, type Database } from '../driver.ts'
import { Db, readSql, type SqlTexts } from '../engine/db.ts'
import { Engine } from '../engine/engine.ts'
import { Runner } from '../engine/runner.ts'
import type { StepName } from '../engine/steps.ts'
import { refuseIfOpen } from '../files/already-open.ts'
import { prepareDirectory, type StoreFiles } from '../files/directory.ts'
import { lockHolder } from '../files/lock-holder.ts'
import { isProcessGone, ownProcess } from '../files/process-identity.ts'
import { openDatabase } from '../open-database.ts'
import { storeError } from '../sqlite-errors.ts'
import { StepQueue } from '../step-queue.ts'
import { Bell } from './bell.ts'
import { sendError, type Answer, type FromStore, type ThreadData, type ToStore } from './protocol.ts'
import { SharedClock } from './shared-clock.ts'
import { packAnswer, unpackArgs } from './tuples.ts'

interface Opened {
  readonly files: StoreFiles
  readonly database: Database
  readonly sql: SqlTexts
}

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
  readonly #queue: StepQueue
  /** Those of the transaction that has just ended. */
  #answers: Answer[] = []
  #listens = false
  #stopLooking: (() => void) | undefined
  #version = 0

  /** Opens the store and tells the main thread how that went. */
  static async start(port: MessagePort, data: ThreadData): Promise<void> {
    const tell = (message: FromStore): void => port.postMessage(message)
    try {
      const driver = await loadDriver()
      const files = prepareDirectory(data.directory, (line) => tell({ type: 'notice', line }))
      if (!data.isOpenHere) refuseIfOpen(files.database)
      const sql = data.sql ?? readSql()
      const database = opened(files, () => openDatabase(driver, files.database, data.durability, sql.tables))
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
      lockHolder: () => lockHolder(files.database),
    })
    this.#queue = new StepQueue(this.#runner, (hints) => this.#answer(hints))
    this.#bell = new Bell(files.bell)
    this.#bell.ringFirst()
    this.#version = this.#dataVersion()
  }

  #receive(message: ToStore): void {
    switch (message.type) {
      case 'call': {
        const { id, name } = message
        const args = unpackArgs(name, message.args)
        const { maxLook } = this.#data
        const all = maxLook !== null && LISTS.has(name) ? [...args, maxLook] : args
        this.#queue.push({ name, args: all }, (outcome) => {
          this.#answers.push(
            'value' in outcome
              ? { id, value: packAnswer(name, outcome.value) }
              : { id, error: sendError(outcome.error) },
          )
        })
        break
      }
      case 'listen':
        this.#listen(message.on)
        break
      case 'pulse': {
        // A lease is renewed from here while the main loop is blocked.
        const renew = (worker: string): Promise<boolean> => this.#queue.call('renew', worker as WorkerId)
        keepPulses({ renew, close: () => Promise.resolve() }, message.port)
        break
      }
      case 'close':
        void this.#close()
        break
    }
  }

  #answer(hints: readonly WakeUp[]): void {
    const answers = this.#answers
    this.#answers = []
    if (answers.length > 0 || hints.length > 0) this.#tell({ type: 'answers', answers, hints })
    if (hints.length > 0) this.#bell.ring()
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

  /**
   * Another process has committed: emits the changes that this process may be waiting for. Our own commits do not
   * change the version.
   */
  #look(): void {
    let version
    try {
      version = this.#dataVersion()
    } catch {
      // Busy while another process recovers the log, or worse, which the next call will say. It is tried again.
      return
    }
    if (version === this.#version) return
    this.#version = version
    const { outcomes } = this.#runner.run([{ name: 'news', args: [] }])
    const [, outcome] = outcomes[0] ?? []
    if (outcome !== undefined && 'value' in outcome)
      this.#tell({ type: 'hints', hints: outcome.value as readonly WakeUp[] })
  }

  #dataVersion(): number {
    return this.#engine.db.get<{ data_version: number }>('dataVersion')?.data_version ?? 0
  }

  async #close(): Promise<void> {
    await this.#queue.idle()
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

function opened(files: StoreFiles, open: () => Database): Database {
  try {
    return open()
  } catch (error) {
    throw storeError(error, () => lockHolder(files.database))
  }
}
