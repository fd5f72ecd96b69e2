/** The main thread's side: starts the thread with the first opening, sends calls there, and hands out the answers. */
import { once } from 'node:events'
import { Worker as Thread, type MessagePort } from 'node:worker_threads'
import { HoldfastError } from '../../../errors.ts'
import { systemClock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import { isSource, startFromSources, threadOptions } from '../../pulse/thread.ts'
import type { WakeUp } from '../../store.ts'
import type { StepAnswer, StepArgs, StepName } from '../engine/steps.ts'
import { enterDirectory } from '../open-here.ts'
import { receiveError, type FromStore, type StoreData, type ThreadData, type ToStore } from './protocol.ts'
import { packArgs, unpackAnswer } from './tuples.ts'

interface Pending {
  readonly name: StepName
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

const CLOSE_MS = 10_000
/**
 * What the thread allocates is garbage as soon as its message is sent. With Node's default (48 MB) a process that had run
 * 100,000 jobs took 400 to 420 MB instead of 300 to 325; with 2 to 16 MB it was as fast.
 */
const YOUNG_MB = 8

export class ThreadLink {
  readonly #data: StoreData
  readonly #onNotice: (line: string) => void
  readonly #onHint: (hint: WakeUp) => void
  readonly #pending = new Map<number, Pending>()
  #lastId = 0
  #opening: Promise<Thread> | undefined
  #closing: Promise<void> | undefined

  constructor(data: StoreData, onNotice: (line: string) => void, onHint: (hint: WakeUp) => void) {
    this.#data = data
    this.#onNotice = onNotice
    this.#onHint = onHint
  }

  /** Safe to call again; after a failure it is tried again. */
  async open(): Promise<void> {
    await this.#thread()
  }

  async call<Name extends StepName>(name: Name, ...args: StepArgs<Name>): Promise<StepAnswer<Name>> {
    const thread = await this.#thread()
    const id = ++this.#lastId
    const answer = new Promise<unknown>((resolve, reject) => this.#pending.set(id, { name, resolve, reject }))
    // Only a pending call keeps the process alive.
    if (this.#pending.size === 1) thread.ref()
    thread.postMessage({ type: 'call', id, name, args: packArgs(name, args) } satisfies ToStore)
    return (await answer) as StepAnswer<Name>
  }

  async listen(on: boolean): Promise<void> {
    const thread = await this.#thread()
    thread.postMessage({ type: 'listen', on } satisfies ToStore)
  }

  /** Gives the thread a port on which it is asked to renew leases. */
  async pulse(port: MessagePort): Promise<void> {
    const thread = await this.#thread()
    thread.postMessage({ type: 'pulse', port } satisfies ToStore, [port])
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const thread = await this.#opening?.catch(() => undefined)
    if (thread === undefined) return
    const ended = once(thread, 'exit')
    thread.ref()
    thread.postMessage({ type: 'close' } satisfies ToStore)
    const late = (): Error => new Error('The thread of the store did not end.')
    await withDeadline(systemClock, CLOSE_MS, ended, late).catch(() => thread.terminate())
  }

  async #thread(): Promise<Thread> {
    if (this.#closing !== undefined) throw closed()
    this.#opening ??= this.#start().catch((error: unknown) => {
      this.#opening = undefined
      throw error
    })
    const thread = await this.#opening
    // It may have been closed meanwhile; the compiler does not know that time has passed.
    if ((this.#closing as Promise<void> | undefined) !== undefined) throw closed()
    return thread
  }

  async #start(): Promise<Thread> {
    const { isOpen, leave } = enterDirectory(this.#data.directory)
    const thread = newThread({ ...this.#data, isOpenHere: isOpen })
    const opened = new Promise<void>((resolve, reject) => {
      thread.on('message', (message: FromStore) => {
        if (message.type === 'opened') resolve()
        else if (message.type === 'failed') reject(receiveError(message.error))
        else this.#receive(thread, message)
      })
      thread.on('error', reject)
      thread.on('exit', () => {
        leave()
        reject(unreachable())
        this.#gone(thread)
      })
    })
    await opened
    thread.unref()
    return thread
  }

  #receive(thread: Thread, message: FromStore): void {
    if (message.type === 'notice') return this.#onNotice(message.line)
    if (message.type === 'answers') {
      for (const answer of message.answers) {
        const pending = this.#pending.get(answer.id)
        this.#pending.delete(answer.id)
        if ('error' in answer) pending?.reject(receiveError(answer.error))
        else pending?.resolve(unpackAnswer(pending.name, answer.value))
      }
      if (this.#pending.size === 0) thread.unref()
    }
    if (message.type === 'answers' || message.type === 'hints')
      for (const hint of message.hints) this.#onHint(hint)
  }

  /** It ended, whether it was told to or not: the next call starts another. */
  #gone(thread: Thread): void {
    thread.removeAllListeners()
    if (this.#closing === undefined) this.#opening = undefined
    const error = this.#closing === undefined ? unreachable() : closed()
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
  }
}

function newThread(data: ThreadData): Thread {
  const { execArgv = [], ...options } = threadOptions(data)
  const all = {
    ...options,
    name: 'holdfast-store',
    execArgv: [...execArgv, ...quiet()],
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  }
  if (isSource(import.meta.url)) return startFromSources(new URL('./store-thread.ts', import.meta.url), all)
  // In this very form bundlers know it, and bring the file along.
  return new Thread(new URL('./store-thread.js', import.meta.url), all)
}

/** Some versions of Node warn that `node:sqlite` is new. */
function quiet(): string[] {
  return process.allowedNodeEnvironmentFlags.has('--disable-warning')
    ? ['--disable-warning=ExperimentalWarning']
    : []
}

function closed(): HoldfastError {
  return new HoldfastError('HF_CLOSED', 'The embedded store is closed.')
}

function unreachable(): HoldfastError {
  return new HoldfastError('HF_STORE_UNREACHABLE', 'The thread of the embedded store ended.')
}
