/** The main thread listens on the heartbeat thread's connection: the thread's side of `ThreadWire` in `pg/wire.ts`. */
import type { MessagePort } from 'node:worker_threads'
import { HoldfastError } from '../../../errors.ts'
import { messageOf, toError } from '../../../std/text.ts'
import type { OwnClient, PgNotice } from '../pg/driver.ts'
import type { PgConnection } from '../pg/connection.ts'
import { explain } from '../server-errors.ts'
import { ANSWER_MS, type FromListenService, type ToListenService } from '../pg/wire.ts'

/** Maximum number of notices kept while the main thread reads none. Beyond that a gap is reported instead. */
const MOST_HELD = 1_000

export class ListenService {
  readonly #port: MessagePort
  #connection: PgConnection<OwnClient> | undefined
  #held: PgNotice[] = []
  #missed = false
  /** Notices were sent to the main thread, which has not acknowledged them yet. */
  #unread = false
  #ended = false

  constructor(port: MessagePort) {
    this.#port = port
    port.on('message', (message: ToListenService) => {
      if (message.type === 'run') void this.#run(message.id, message.text)
      else this.#read()
    })
    port.on('close', () => this.#close())
    this.#post({ type: 'hello' })
  }

  async serve(connection: PgConnection<OwnClient>): Promise<void> {
    if (this.#ended) return
    this.#connection = connection
    try {
      // Subscriptions of the service before this one.
      await connection.run({ text: 'unlisten *' }, ANSWER_MS)
      this.#post({ type: 'open' })
    } catch (error) {
      this.fail(error)
    }
  }

  fail(thrown: unknown): void {
    const error = toError(explain(thrown))
    const code = error instanceof HoldfastError ? error.code : 'HF_STORE_UNREACHABLE'
    // If the package cannot be loaded in the thread, the main thread should use its own connection.
    if (code !== 'HF_BAD_STORE') this.#post({ type: 'failed', code, why: error.message })
    this.end()
  }

  hear(connection: PgConnection<OwnClient>, { channel, payload }: PgNotice): void {
    if (connection !== this.#connection) return
    this.#held.push({ channel, payload })
    if (this.#held.length > MOST_HELD) {
      this.#held = []
      this.#missed = true
    }
    this.#send()
  }

  lost(connection: PgConnection<OwnClient>): void {
    if (connection === this.#connection) this.end()
  }

  /** Ends for good; the next service removes this one's subscriptions. */
  end(): void {
    this.#ended = true
    this.#port.close()
  }

  /** The main thread no longer listens. */
  #close(): void {
    if (this.#ended) return
    this.#ended = true
    this.#connection?.run({ text: 'unlisten *' }, ANSWER_MS).catch(() => undefined)
  }

  async #run(id: number, text: string): Promise<void> {
    const error = await this.#connection?.run({ text }, ANSWER_MS).then(
      () => null,
      (thrown: unknown) => messageOf(thrown),
    )
    this.#post({ type: 'answer', id, error: error ?? null })
  }

  #read(): void {
    this.#unread = false
    this.#send()
  }

  /**
   * One message at a time: while the main thread is busy, notices are collected, so that they do not flood its event
   * loop.
   */
  #send(): void {
    if (this.#unread || (this.#held.length === 0 && !this.#missed)) return
    this.#unread = true
    this.#post({ type: 'notices', notices: this.#held, missed: this.#missed })
    this.#held = []
    this.#missed = false
  }

  #post(message: FromListenService): void {
    this.#port.postMessage(message)
  }
}
