/**
 * One connection to Redis for the heartbeat thread: as much of ioredis as `Line` uses. Loading ioredis a second time,
 * in the thread, takes 13 MB of a worker's memory, for one script every ten seconds.
 */
import { EventEmitter } from 'node:events'
import { connect, type Socket } from 'node:net'
import { toError } from '../../../std/text.ts'
import type { RedisClient, RedisModule, RedisValue } from '../driver.ts'
import { ReplyError, ReplyParser } from './reply-parser.ts'
import type { RespTarget } from './resp-target.ts'

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** A peer that vanished is noticed although nothing is sent, as with the `keepAlive` of `FIXED`. */
const KEEP_ALIVE_MS = 10_000
/** A password for a server without one is no reason to stop; ioredis warns about it in the main thread. */
const NO_PASSWORD_NEEDED = /no password is set|without any password configured/

/** In place of the module `ioredis`: all of its clients connect to the target. */
export function respModule(target: RespTarget): RedisModule {
  return {
    Redis: class extends RespClient {
      constructor() {
        super(target)
      }
    },
  }
}

export class RespClient extends EventEmitter implements RedisClient {
  status: 'wait' | 'connecting' | 'ready' | 'end' = 'wait'
  stream?: Socket
  readonly #target: RespTarget
  readonly #parser = new ReplyParser()
  /** In the order of their commands, which is that of the replies. */
  readonly #pending: Pending[] = []
  #error: Error | undefined

  constructor(target: RespTarget) {
    super()
    this.#target = target
  }

  async connect(): Promise<void> {
    if (this.status !== 'wait') throw new Error('This connection was used already.')
    this.status = 'connecting'
    const { auth, connectionName } = this.#target
    try {
      await this.#open()
      const entered = auth === null ? null : this.#send('AUTH', auth)
      // Shown in CLIENT LIST; it does not matter if the server forbids it.
      if (connectionName !== null) this.#send('CLIENT', ['SETNAME', connectionName]).catch(() => undefined)
      await entered?.catch(unlessUnneeded)
      if (this.#isOver()) throw this.#lost()
      this.status = 'ready'
    } catch (error) {
      this.disconnect()
      throw toError(error)
    }
  }

  call(command: string, args: readonly RedisValue[]): Promise<unknown> {
    return this.status === 'ready' ? this.#send(command, args) : Promise.reject(this.#lost())
  }

  /** The thread renews; it does not listen. */
  subscribe(): Promise<never> {
    return Promise.reject(new TypeError('The heartbeat thread does not subscribe.'))
  }

  ping(): Promise<unknown> {
    return this.call('PING', [])
  }

  quit(): Promise<unknown> {
    return this.call('QUIT', [])
  }

  disconnect(): void {
    if (this.stream === undefined) this.#end()
    else this.stream.destroy()
  }

  async #open(): Promise<void> {
    const { socket, tls, noDelay } = this.#target
    // Loaded only if it is used: it takes 6 MB.
    const secure = tls === null ? null : await import('node:tls')
    if (this.#isOver()) throw this.#lost()
    const stream = secure === null ? connect(socket) : secure.connect({ ...socket, ...tls })
    this.stream = stream
    stream.setNoDelay(noDelay)
    stream.on('error', (error: Error) => this.#fail(error))
    stream.on('close', () => this.#end())
    stream.on('data', (chunk: Buffer) => this.#receive(chunk))
    await new Promise<void>((resolve, reject) => {
      stream.once(secure === null ? 'connect' : 'secureConnect', resolve)
      stream.once('close', () => reject(this.#lost()))
    })
    stream.setKeepAlive(true, KEEP_ALIVE_MS)
  }

  #send(command: string, args: readonly RedisValue[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject })
      this.stream?.write(encode([command, ...args]))
    })
  }

  #receive(chunk: Buffer): void {
    try {
      for (const reply of this.#parser.push(chunk)) {
        const pending = this.#pending.shift()
        if (reply instanceof ReplyError) pending?.reject(reply)
        else pending?.resolve(reply)
      }
    } catch (error) {
      // The replies that follow cannot be told apart.
      this.stream?.destroy(toError(error))
    }
  }

  #fail(error: Error): void {
    this.#error ??= error
    if (this.listenerCount('error') > 0) this.emit('error', error)
  }

  #end(): void {
    if (this.#isOver()) return
    this.status = 'end'
    for (const { reject } of this.#pending.splice(0)) reject(this.#lost())
    this.emit('end')
  }

  #isOver(): boolean {
    return this.status === 'end'
  }

  #lost(): Error {
    return this.#error ?? new Error('Connection is closed.')
  }
}

function unlessUnneeded(error: unknown): void {
  if (!(error instanceof ReplyError) || !NO_PASSWORD_NEEDED.test(error.message)) throw error
}

function encode(parts: readonly RedisValue[]): string {
  const texts = parts.map(String)
  const sized = texts.map((text) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`)
  return `*${parts.length}\r\n${sized.join('')}`
}
