/** The main thread's side: starts the thread with the first opening, sends calls there, and hands out the answers. */
import { once } from 'node:events'
import type { MessagePort, Worker as Thread } from 'node:worker_threads'
import { HoldfastError } from '../../../errors.ts'
import { systemClock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import type { WakeUp } from '../../store.ts'
import type { StepAnswer, StepArgs, StepName } from '../engine/steps.ts'
import { startStoreThread } from '../start-thread.ts'
import { receiveError, type FromStore, type StoreData, type ToStore } from './protocol.ts'
import { packArgs, unpackAnswer } from './tuples.ts'

interface Pending {
  readonly name: StepName
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/** One thread and the calls that it has not answered. */
interface Live {
  readonly thread: Thread
  readonly pending: Map<number, Pending>
}

export interface LinkParts {
  readonly data: StoreData
  readonly onNotice: (line: string) => void
  readonly onHint: (hint: WakeUp) => void
  /** How long `close()` waits for the thread, each time. */
  readonly closeMs?: number
}

const CLOSE_MS = 10_000

export class ThreadLink {
  readonly #parts: LinkParts
  #lastId = 0
  /** Told to each thread: one that takes the place of another knows nothing of who listens. */
  #listens = false
  /** The thread that was started last, unless it has ended. */
  #live: Live | undefined
  #opening: Promise<Live> | undefined
  #closing: Promise<void> | undefined

  constructor(parts: LinkParts) {
    this.#parts = parts
  }

  /** Safe to call again; after a failure it is tried again. */
  async open(): Promise<void> {
    await this.#opened()
  }

  async call<Name extends StepName>(name: Name, ...args: StepArgs<Name>): Promise<StepAnswer<Name>> {
    const { thread, pending } = await this.#opened()
    const id = ++this.#lastId
    // Throws if the arguments cannot be copied: before anybody waits for the answer.
    thread.postMessage({ type: 'call', id, name, args: packArgs(name, args) } satisfies ToStore)
    const answer = new Promise<unknown>((resolve, reject) => pending.set(id, { name, resolve, reject }))
    // Only a call that waits is a reason for the process to go on.
    if (pending.size === 1) thread.ref()
    return (await answer) as StepAnswer<Name>
  }

  async listen(on: boolean): Promise<void> {
    const { thread } = await this.#opened()
    this.#listens = on
    thread.postMessage({ type: 'listen', on, late: false } satisfies ToStore)
  }

  /** Gives the thread a port on which it is asked to renew leases. */
  async pulse(port: MessagePort): Promise<void> {
    const { thread } = await this.#opened()
    thread.postMessage({ type: 'pulse', port } satisfies ToStore, [port])
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { closeMs = CLOSE_MS } = this.#parts
    const late = (): Error => new Error('The thread of the store did not end.')
    const opening = this.#opening?.catch(() => undefined)
    try {
      await withDeadline(systemClock, closeMs, Promise.resolve(opening), late)
      if (this.#live === undefined) return
      const { thread } = this.#live
      const ended = once(thread, 'exit')
      thread.ref()
      thread.postMessage({ type: 'close' } satisfies ToStore)
      await withDeadline(systemClock, closeMs, ended, late)
    } catch {
      // Not awaited: a thread that hangs in a call to the system ends when that does.
      this.#live?.thread.unref()
      void this.#live?.thread.terminate()
    }
  }

  async #opened(): Promise<Live> {
    if (this.#closing !== undefined) throw closed()
    if (this.#opening === undefined) {
      const opening = this.#start()
      this.#opening = opening
      opening.catch(() => this.#forget(opening))
    }
    const live = await this.#opening
    // It may have been closed meanwhile; the compiler does not know that time has passed.
    if ((this.#closing as Promise<void> | undefined) !== undefined) throw closed()
    return live
  }

  #forget(opening: Promise<Live>): void {
    if (this.#opening === opening) this.#opening = undefined
  }

  async #start(): Promise<Live> {
    const thread = startStoreThread(this.#parts.data)
    const live: Live = { thread, pending: new Map() }
    this.#live = live
    const opened = new Promise<void>((resolve, reject) => {
      thread.on('message', (message: FromStore) => {
        if (message.type === 'opened') resolve()
        else if (message.type === 'failed') reject(receiveError(message.error))
        else this.#receive(live, message)
      })
      thread.on('error', reject)
      thread.on('exit', () => {
        reject(unreachable())
        this.#ended(live)
      })
    })
    await opened
    thread.unref()
    if (this.#listens) thread.postMessage({ type: 'listen', on: true, late: true } satisfies ToStore)
    return live
  }

  #receive({ thread, pending }: Live, message: FromStore): void {
    if (message.type === 'notice') return this.#parts.onNotice(message.line)
    if (message.type === 'answers') {
      for (const answer of message.answers) {
        const call = pending.get(answer.id)
        pending.delete(answer.id)
        if ('error' in answer) call?.reject(receiveError(answer.error))
        else call?.resolve(unpackAnswer(call.name, answer.value))
      }
      if (pending.size === 0) thread.unref()
    }
    if (message.type === 'answers' || message.type === 'hints')
      for (const hint of message.hints) this.#parts.onHint(hint)
  }

  /** It ended, whether it was told to or not: the next call starts another, unless that has happened already. */
  #ended(live: Live): void {
    live.thread.removeAllListeners()
    if (this.#live === live) {
      this.#live = undefined
      if (this.#closing === undefined) this.#opening = undefined
    }
    const error = this.#closing === undefined ? unreachable() : closed()
    for (const { reject } of live.pending.values()) reject(error)
    live.pending.clear()
  }
}

function closed(): HoldfastError {
  return new HoldfastError('HF_CLOSED', 'The embedded store is closed.')
}

function unreachable(): HoldfastError {
  return new HoldfastError('HF_STORE_UNREACHABLE', 'The thread of the embedded store ended.')
}
