/**
 * Leases that survive a blocked event loop: a thread of its own renews them, on a connection of its own. One thread
 * for all workers of a store, started with the first of them. It never keeps the process alive, and if it fails nothing
 * is lost but its help: the workers' own heartbeats go on as they do.
 *
 * What both sides know stands in shared memory (`pulse-memory.ts`), since a blocked loop reads no messages. The thread
 * trusts the main loop for a limited time only: each turn is noted there, and a worker whose loop has not turned for
 * longer than its patience is not renewed.
 */
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { Worker as Thread, type WorkerOptions } from 'node:worker_threads'
import type { WorkerId } from '../../../job/ids.ts'
import { asError, type Clock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import { threadMs } from '../../../std/thread-clock.ts'
import type { Pulse } from '../../store.ts'
import { render, type Names } from '../names.ts'
import { PulseMemory } from './pulse-memory.ts'
import type { FromPulseThread, PulseThreadData, ToPulseThread } from './pulse-thread.ts'

export interface PulseParts {
  /** Null where there is none, beside a lent pool: then there is no thread either. */
  readonly connectionString: string | null
  readonly names: Names
  readonly clock: Clock
  /** Told once of what does not work as well as it could, in a line for people. */
  readonly onNotice: (line: string) => void
  /** @default the real one */
  readonly startThread?: (data: PulseThreadData) => Thread
}

type Kept = Omit<ToPulseThread & { type: 'keep' }, 'type'>

const RENEW = `update holdfast.worker set expires_at = holdfast.now_ms() + lease_ms where id = $1::uuid returning id`
/** A thread that ended by itself is not worth another try at once. */
const RESTART_MS = 10_000
const CLOSE_MS = 2_000

export class Pulses {
  readonly #parts: PulseParts
  readonly #kept = new Map<number, Kept>()
  #thread: Thread | undefined
  #startFromMs = -Infinity
  #lastKey = 0
  #closed = false
  #hasComplained = false

  constructor(parts: PulseParts) {
    this.#parts = parts
  }

  keepAlive(worker: WorkerId, leaseMs: number): Pulse | null {
    const { clock, connectionString } = this.#parts
    if (connectionString === null)
      this.#complain('a lent pool without a `url` beside it has no connection for it')
    if (this.#closed || connectionString === null) return null
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

  async close(): Promise<void> {
    this.#closed = true
    this.#kept.clear()
    const thread = this.#thread
    if (thread === undefined) return
    const ended = once(thread, 'exit')
    this.#tell({ type: 'close' })
    const late = (): Error => new Error('the thread did not end')
    await withDeadline(this.#parts.clock, CLOSE_MS, ended, late).catch(() => thread.terminate())
  }

  #keepThread(): void {
    const { clock, connectionString, names, startThread = startPulseThread } = this.#parts
    if (this.#thread !== undefined || this.#closed || connectionString === null) return
    if (clock.monotonicMs() < this.#startFromMs) return
    this.#startFromMs = clock.monotonicMs() + RESTART_MS
    try {
      const thread = startThread({ connectionString, renew: render(RENEW, names) })
      thread.on('error', (error) => this.#complain(error.message))
      thread.on('message', ({ why }: FromPulseThread) => this.#complain(why))
      thread.on('exit', () => {
        if (this.#thread === thread) this.#thread = undefined
      })
      // It serves the process, and is no reason for it to go on. Last, because a listener for messages is one.
      thread.unref()
      this.#thread = thread
      for (const kept of this.#kept.values()) this.#tell({ type: 'keep', ...kept })
    } catch (error) {
      this.#complain(asError(error).message)
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

function startPulseThread(data: PulseThreadData): Thread {
  const options: WorkerOptions = {
    name: 'holdfast-pulse',
    workerData: data,
    // Without what the program preloads (--import, --require): that is written for its main thread.
    execArgv: [],
    env: { ...process.env, NODE_OPTIONS: '' },
  }
  if (import.meta.url.endsWith('.ts')) return startFromSources(options)
  // In this very form bundlers know it, and bring the file along.
  return new Thread(new URL('./pulse-thread.js', import.meta.url), options)
}

/**
 * For our own tests, benchmarks and examples: Node 20 reads no TypeScript, and a thread has neither vitest's nor tsx's
 * way of doing so. (A thread as text for `eval` would need no such detour, but neither compiler nor linter reads that.)
 */
function startFromSources(options: WorkerOptions): Thread {
  const file = JSON.stringify(fileURLToPath(new URL('./pulse-thread.ts', import.meta.url)))
  const jiti = JSON.stringify(createRequire(import.meta.url).resolve('jiti'))
  const load = `require(${jiti}).createJiti(${file}).import(${file})`
  return new Thread(load, { ...options, eval: true })
}
