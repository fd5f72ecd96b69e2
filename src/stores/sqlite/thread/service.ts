/**
 * The thread's side: owns the connection and runs what the main thread asks for. What arrives while a transaction waits for
 * the disk shares the next one.
 */
import type { MessagePort } from 'node:worker_threads'
import { systemClock } from '../../../std/clock.ts'
import type { WorkerId } from '../../../job/ids.ts'
import { keepPulses } from '../../pulse/keeper.ts'
import type { WakeUp } from '../../store.ts'
import { loadDriver } from '../driver.ts'
import { readSql } from '../engine/db.ts'
import type { StepName } from '../engine/steps.ts'
import { prepareDirectory } from '../files/directory.ts'
import { StepQueue } from '../step-queue.ts'
import { Connection } from './connection.ts'
import { refuseOtherLibrary } from './open-here.ts'
import { sendError, type Answer, type FromStore, type StoreData, type ToStore } from './protocol.ts'
import { packAnswer, unpackArgs } from './tuples.ts'

/** How often it looks for commits of other processes whose bell was not heard. */
const LOOK_MS = 1_000
/** Steps whose answer depends on how far a list may look. */
const LISTS: ReadonlySet<StepName> = new Set(['list', 'deadGroups', 'change'])

export class StoreService {
  readonly #port: MessagePort
  readonly #data: StoreData
  readonly #connection: Connection
  readonly #queue: StepQueue
  /** Those of the transaction that has just ended. */
  #answers: Answer[] = []
  #listens = false
  #stopLooking: (() => void) | undefined
  /** The last commit of others whose news are told; undefined if that is not known. */
  #version: number | undefined

  /** Opens the store and tells the main thread how that went. */
  static async start(port: MessagePort, data: StoreData): Promise<void> {
    const tell = (message: FromStore): void => port.postMessage(message)
    try {
      const driver = await loadDriver()
      const onNotice = (line: string): void => tell({ type: 'notice', line })
      // What it would notice is noticed again when the connection is opened.
      const { database } = prepareDirectory(data.directory, () => undefined)
      await refuseOtherLibrary(database, driver.library)
      const connection = new Connection({
        driver,
        data,
        sql: data.sql ?? readSql(),
        onNotice,
        onBell: () => service.#look(),
        // Each connection has numbers of its own.
        onReopened: () => (service.#version = undefined),
      })
      const service = new StoreService(port, data, connection)
      connection.open()
      service.#version = connection.dataVersion()
      port.on('message', (message: ToStore) => service.#receive(message))
      tell({ type: 'opened' })
    } catch (error) {
      tell({ type: 'failed', error: sendError(error) })
      port.close()
    }
  }

  private constructor(port: MessagePort, data: StoreData, connection: Connection) {
    this.#port = port
    this.#data = data
    this.#connection = connection
    this.#queue = new StepQueue(connection, (hints) => this.#answer(hints))
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
        if (message.late) this.#version = undefined
        this.#listen(message.on)
        if (message.late) this.#look()
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
    if (hints.length > 0) this.#connection.ring()
  }

  #listen(on: boolean): void {
    if (on === this.#listens) return
    this.#listens = on
    this.#connection.listen(on)
    if (on) this.#lookLater()
    else this.#stopLooking?.()
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
    if (this.#connection.check()) this.#version = undefined
    const version = this.#connection.dataVersion()
    if (version === undefined || version === this.#version) return
    const { outcomes } = this.#connection.run([{ name: 'news', args: [] }])
    const [, outcome] = outcomes[0] ?? []
    // What could not be read is still to be told.
    if (outcome === undefined || 'error' in outcome) return
    this.#version = version
    this.#tell({ type: 'hints', hints: outcome.value as readonly WakeUp[] })
  }

  async #close(): Promise<void> {
    await this.#queue.idle()
    this.#listen(false)
    this.#connection.close()
    this.#port.close()
  }

  #tell(message: FromStore): void {
    this.#port.postMessage(message)
  }
}
