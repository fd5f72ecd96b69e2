/**
 * The connection that listens. In a process with a heartbeat thread it is the thread's own, which the main thread uses
 * through a port, so a worker process needs one connection less. In every other process, and if the thread does not
 * start, it is one of our own.
 */
import type { MessagePort } from 'node:worker_threads'
import { HoldfastError, type ErrorCode } from '../../../errors.ts'
import type { Clock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import { cut, unreachable, type Connector, type PgNotice } from './driver.ts'
import { PgConnection } from './connection.ts'

export interface Wire {
  readonly isOwn: boolean
  /** Resolves with the connection's end. */
  readonly gone: Promise<void>
  /** Rejects if the server refuses the statement or does not answer within `ANSWER_MS`. */
  run(text: string): Promise<void>
  /** Ends it in the protocol's way. */
  end(): Promise<void>
  /** Ends it at once; pending calls reject with this reason. */
  cut(reason: Error): void
}

export interface WireTells {
  readonly onNotice: (notice: PgNotice) => void
  /** Notices were dropped because the main thread did not read them for a while. */
  readonly onGap: () => void
}

export type OpenWire = (tells: WireTells, stop: AbortSignal) => Promise<Wire>

/** The heartbeat thread, if there is one. */
export interface ListenThread {
  /** A port to its connection; null while there is no thread. */
  openPort(): MessagePort | null
  /** Called whenever a thread has started. */
  onThread: () => void
}

/** Statements of the main thread for the heartbeat thread's connection. */
export type ToListenService =
  | { readonly type: 'run'; readonly id: number; readonly text: string }
  /** The notices sent last were read: the next ones may come. */
  | { readonly type: 'heard' }

export type FromListenService =
  /** The thread has started, and connects if need be. */
  | { readonly type: 'hello' }
  | { readonly type: 'open' }
  | { readonly type: 'failed'; readonly code: ErrorCode; readonly why: string }
  | { readonly type: 'answer'; readonly id: number; readonly error: string | null }
  | { readonly type: 'notices'; readonly notices: readonly PgNotice[]; readonly missed: boolean }

export const ANSWER_MS = 5_000
/** A thread that needs longer to start takes over later. */
const HELLO_MS = 2_000
/** Longer than the thread's own timeout, whose error says more. */
const OPEN_MS = 10_000
const THREAD_ANSWER_MS = 2 * ANSWER_MS

export async function ownWire(
  connector: Connector,
  clock: Clock,
  { onNotice }: WireTells,
  stop: AbortSignal,
): Promise<Wire> {
  const client = await connector.connect(stop)
  const connection = new PgConnection(client, clock, () => cut(client))
  client.on('notification', onNotice)
  return {
    isOwn: true,
    gone: new Promise((resolve) => client.on('end', resolve)),
    run: async (text) => {
      await connection.run({ text }, ANSWER_MS)
    },
    end: () => connector.end(client),
    cut: (reason) => connection.destroy(reason),
  }
}

/** Null if the thread does not start in time: the caller then uses a connection of our own. */
export async function threadWire(
  port: MessagePort,
  clock: Clock,
  tells: WireTells,
  stop: AbortSignal,
): Promise<Wire | null> {
  const wire = new ThreadWire(port, clock, tells)
  const cutShort = (): void => port.close()
  stop.addEventListener('abort', cutShort)
  try {
    stop.throwIfAborted()
    const isThere = await withDeadline(clock, HELLO_MS, wire.hello, slow).catch(() => false)
    if (!isThere || !(await withDeadline(clock, OPEN_MS, wire.opened, slow))) {
      port.close()
      return null
    }
    return wire
  } catch (error) {
    port.close()
    throw error
  } finally {
    stop.removeEventListener('abort', cutShort)
  }
}

class ThreadWire implements Wire {
  readonly isOwn = false
  readonly gone: Promise<void>
  /** Both resolve to false if the port is closed first. */
  readonly hello: Promise<boolean>
  readonly opened: Promise<boolean>
  readonly #port: MessagePort
  readonly #clock: Clock
  readonly #tells: WireTells
  readonly #answers = new Map<number, (error: Error | null) => void>()
  #lastId = 0
  #cutFor: Error | undefined
  #greet: (isThere: boolean) => void = nothing
  #open: (isOpen: boolean) => void = nothing
  #fail: (error: Error) => void = nothing

  constructor(port: MessagePort, clock: Clock, tells: WireTells) {
    this.#port = port
    this.#clock = clock
    this.#tells = tells
    this.hello = new Promise((resolve) => (this.#greet = resolve))
    this.opened = new Promise((resolve, reject) => {
      this.#open = resolve
      this.#fail = reject
    })
    // Nothing may be waiting for it any more.
    this.opened.catch(nothing)
    this.gone = new Promise((resolve) => {
      port.on('close', () => {
        this.#end()
        resolve()
      })
    })
    port.on('message', (message: FromListenService) => this.#hear(message))
    // Listening must not keep the process alive. Last, because adding a message listener refs the port again.
    port.unref()
  }

  run(text: string): Promise<void> {
    const id = ++this.#lastId
    const answered = new Promise<void>((resolve, reject) => {
      this.#answers.set(id, (error) => (error === null ? resolve() : reject(error)))
    })
    this.#post({ type: 'run', id, text })
    return withDeadline(this.#clock, THREAD_ANSWER_MS, answered, slow)
  }

  end(): Promise<void> {
    this.#port.close()
    return this.gone
  }

  cut(reason: Error): void {
    this.#cutFor ??= reason
    this.#port.close()
  }

  #hear(message: FromListenService): void {
    switch (message.type) {
      case 'hello':
        return this.#greet(true)
      case 'open':
        return this.#open(true)
      case 'failed':
        return this.#fail(new HoldfastError(message.code, message.why))
      case 'answer':
        return this.#answer(message.id, message.error === null ? null : unreachable(message.error))
      case 'notices':
        if (message.missed) this.#tells.onGap()
        for (const notice of message.notices) this.#tells.onNotice(notice)
        return this.#post({ type: 'heard' })
    }
  }

  #answer(id: number, error: Error | null): void {
    this.#answers.get(id)?.(error)
    this.#answers.delete(id)
  }

  #end(): void {
    this.#greet(false)
    this.#open(false)
    const reason = this.#cutFor ?? unreachable('The thread that listens ended.')
    for (const id of this.#answers.keys()) this.#answer(id, reason)
  }

  #post(message: ToListenService): void {
    this.#port.postMessage(message)
  }
}

const nothing = (): void => undefined

function slow(): Error {
  return unreachable('The thread that listens did not answer in time.')
}
