/**
 * Leases that survive a blocked event loop: a separate thread renews them, on its own connection. One thread serves all
 * workers of a store, started with the first of them. It never keeps the process alive, and if it fails, the workers'
 * own heartbeats continue as before.
 *
 * Both sides share memory (`pulse-memory.ts`), because a blocked loop reads no messages. The thread trusts the main
 * loop for a limited time only: each turn is recorded there, and a worker whose loop has not turned for longer than its
 * patience is not renewed.
 */
import type { EventEmitter } from 'node:events'
import { MessageChannel, type MessagePort, type TransferListItem } from 'node:worker_threads'
import type { WorkerId } from '../../job/ids.ts'
import type { Clock } from '../../std/clock.ts'
import { withDeadline } from '../../std/deadline.ts'
import { toError } from '../../std/text.ts'
import { threadMs } from '../../std/thread-clock.ts'
import type { Pulse } from '../store.ts'
import type { FromPulseThread, ToPulseThread } from './keeper.ts'
import { PulseMemory } from './pulse-memory.ts'

/** The part of a thread used here: a `Worker` has it, and so does a port into a thread with other tasks. */
export interface PulseThread extends Pick<EventEmitter, 'on' | 'once'> {
  postMessage(message: ToPulseThread, transfer?: readonly TransferListItem[]): void
  /** Lets the process exit. */
  unref(): void
  terminate(): unknown
}

export interface PulseParts {
  /** Starts the store's thread, or returns why there can be none. */
  readonly thread: (() => PulseThread) | { readonly missing: string }
  readonly clock: Clock
  /** Called once, with a line for people, about anything that does not work as well as it could. */
  readonly onNotice: (line: string) => void
}

type Kept = Omit<ToPulseThread & { type: 'keep' }, 'type'>

/** A thread that ended by itself is not worth another try at once. */
const RESTART_MS = 10_000
const CLOSE_MS = 2_000

export class Pulses {
  /** Called whenever a thread has started. */
  onThread: () => void = () => undefined
  readonly #parts: PulseParts
  readonly #kept = new Map<number, Kept>()
  #thread: PulseThread | undefined
  #startFromMs = -Infinity
  #lastKey = 0
  #closed = false
  #hasComplained = false

  constructor(parts: PulseParts) {
    this.#parts = parts
  }

  keepAlive(worker: WorkerId, leaseMs: number): Pulse | null {
    const { clock, thread } = this.#parts
    if (typeof thread !== 'function') this.#complain(thread.missing)
    if (this.#closed || typeof thread !== 'function') return null
    const memory = new PulseMemory()
    const key = ++this.#lastKey
    const kept: Kept = { key, worker, leaseMs, buffer: memory.buffer }
    memory.turnedMs = threadMs()
    memory.patienceMs = leaseMs
    this.#kept.set(key, kept)
    if (this.#thread === undefined) this.#keepThread()
    else this.#tell({ type: 'keep', ...kept })
    return {
      get sentMs() {
        const { sentMs } = memory
        return sentMs === 0 ? -Infinity : clock.monotonicMs() - (threadMs() - sentMs)
      },
      get alive() {
        return !memory.gone
      },
      turned: () => {
        memory.turnedMs = threadMs()
        this.#keepThread()
      },
      setPatience: (ms) => {
        memory.patienceMs = ms
      },
      started: (name) => memory.count(name, 1),
      ended: (name) => memory.count(name, -1),
      stop: () => {
        if (this.#kept.delete(key)) this.#tell({ type: 'drop', key })
      },
    }
  }

  /** A port to the thread's connection, which is not opened for this; null while there is no thread. */
  openPort(): MessagePort | null {
    if (this.#thread === undefined || this.#closed) return null
    const { port1, port2 } = new MessageChannel()
    this.#thread.postMessage({ type: 'listen', port: port2 } satisfies ToPulseThread, [port2])
    return port1
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#kept.clear()
    const thread = this.#thread
    if (thread === undefined) return
    const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
    this.#tell({ type: 'close' })
    const late = (): Error => new Error('the thread did not end')
    await withDeadline(this.#parts.clock, CLOSE_MS, ended, late).catch(() => thread.terminate())
  }

  #keepThread(): void {
    const { clock, thread: start } = this.#parts
    if (this.#thread !== undefined || this.#closed || typeof start !== 'function') return
    if (clock.monotonicMs() < this.#startFromMs) return
    this.#startFromMs = clock.monotonicMs() + RESTART_MS
    try {
      const thread = start()
      thread.on('error', (error: Error) => this.#complain(error.message))
      thread.on('message', (message: FromPulseThread) => {
        if (message.type === 'ready') this.onThread()
        else this.#complain(message.why)
      })
      thread.on('exit', () => {
        if (this.#thread === thread) this.#thread = undefined
      })
      // The thread must not keep the process alive. Last, because adding a message listener refs it again.
      thread.unref()
      this.#thread = thread
      for (const kept of this.#kept.values()) this.#tell({ type: 'keep', ...kept })
    } catch (error) {
      this.#complain(toError(error).message)
    }
  }

  #tell(message: ToPulseThread): void {
    this.#thread?.postMessage(message)
  }

  #complain(why: string): void {
    if (this.#hasComplained || this.#closed) return
    this.#hasComplained = true
    this.#parts.onNotice(
      `No thread renews the leases of this process (${why}): a handler that blocks the event loop for longer than the lease loses its jobs to other workers.`,
    )
  }
}
