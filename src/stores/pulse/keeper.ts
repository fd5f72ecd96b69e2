/**
 * The thread that renews leases while the event loop of the process is blocked; `pulse.ts` starts it. Each store has a
 * file for its thread, which sends a renewal. The thread has its own connection, so neither a blocked loop nor an
 * exhausted pool keeps it from renewing. A process that is frozen (SIGSTOP) freezes it as well, and loses its lease, as
 * it should.
 */
import { write } from 'node:fs'
import { parentPort, type MessagePort } from 'node:worker_threads'
import { isLasting } from '../../errors.ts'
import { jittered, nextPause } from '../../std/backoff.ts'
import { sleep, systemClock } from '../../std/clock.ts'
import { formatDuration } from '../../std/duration.ts'
import { systemRandom } from '../../std/random.ts'
import { messageOf } from '../../std/text.ts'
import { threadMs } from '../../std/thread-clock.ts'
import { PulseMemory } from './pulse-memory.ts'

/** The thread's one connection: opened on demand, reopened when it is lost, closed when it is unused. */
export interface PulseLink {
  /** False if the store does not know the worker. Rejects well within the lease if there is no answer. */
  renew(worker: string, leaseMs: number): Promise<boolean>
  /** Runs LISTEN for the main thread on its connection, through this port, until either side closes the port. */
  listen?(port: MessagePort): void
  /** A later renewal or `listen` connects again. */
  close(): Promise<void>
}

export type ToPulseThread =
  | {
      readonly type: 'keep'
      readonly key: number
      readonly worker: string
      readonly leaseMs: number
      readonly buffer: SharedArrayBuffer
    }
  | { readonly type: 'drop'; readonly key: number }
  | { readonly type: 'listen'; readonly port: MessagePort }
  | { readonly type: 'close' }

export type FromPulseThread =
  | { readonly type: 'ready' }
  /**
   * The renewals have never worked, for as long as a lease or for a reason that lasts: not an outage, but a problem
   * that a person has to fix.
   */
  | { readonly type: 'useless'; readonly why: string }

const FIRST_BACKOFF_MS = 100

/** Call it once for each port, in the thread. */
export function keepPulses(link: PulseLink, port: MessagePort | null = parentPort): void {
  const kept = new Map<number, AbortController>()
  const ports = new Set<MessagePort>()
  const drop = (key: number): void => {
    kept.get(key)?.abort()
    kept.delete(key)
  }
  const closeIfUnused = (): void => {
    if (kept.size === 0 && ports.size === 0) void link.close()
  }
  const tell = (message: FromPulseThread): void => port?.postMessage(message)
  port?.on('message', (message: ToPulseThread) => {
    switch (message.type) {
      case 'keep': {
        const stop = new AbortController()
        kept.set(message.key, stop)
        void new Keeper(link, message, stop.signal, tell).run()
        break
      }
      case 'drop':
        drop(message.key)
        closeIfUnused()
        break
      case 'listen': {
        const listenPort = message.port
        ports.add(listenPort)
        listenPort.on('close', () => {
          ports.delete(listenPort)
          closeIfUnused()
        })
        if (link.listen === undefined) listenPort.close()
        else link.listen(listenPort)
        break
      }
      case 'close':
        for (const key of kept.keys()) drop(key)
        for (const listenPort of ports) listenPort.close()
        // Nothing is left then that would keep the thread alive.
        void link.close().then(() => port?.close())
        break
    }
  })
  tell({ type: 'ready' })
}

/** Keeps the lease of one worker, for as long as the main loop turns often enough. */
class Keeper {
  readonly #link: PulseLink
  readonly #worker: string
  readonly #leaseMs: number
  readonly #memory: PulseMemory
  readonly #stop: AbortSignal
  readonly #report: (message: FromPulseThread) => void
  readonly #startedMs = threadMs()
  /** The pause before the last try; 0 if it worked. */
  #backoffMs = 0
  /** What was already reported about the current block. */
  #reported: 'nothing' | 'blocked' | 'given up' = 'nothing'
  #everWorked = false

  constructor(
    link: PulseLink,
    { worker, leaseMs, buffer }: ToPulseThread & { type: 'keep' },
    stop: AbortSignal,
    report: (message: FromPulseThread) => void,
  ) {
    this.#report = report
    this.#link = link
    this.#worker = worker
    this.#leaseMs = leaseMs
    this.#memory = new PulseMemory(buffer)
    this.#stop = stop
  }

  async run(): Promise<void> {
    while (!this.#stop.aborted && !this.#memory.gone) {
      const blockedMs = threadMs() - this.#memory.turnedMs
      this.#tell(blockedMs)
      // Jitter, so that a fleet that started together does not beat together.
      let waitMs = jittered(this.#leaseMs / 3, systemRandom.float(), 0.2)
      if (blockedMs < this.#memory.patienceMs && (await this.#renew()) === 'try soon') {
        const backoff = { firstMs: FIRST_BACKOFF_MS, longestMs: this.#leaseMs / 6 }
        this.#backoffMs = nextPause(backoff, this.#backoffMs)
        waitMs = jittered(this.#backoffMs, systemRandom.float())
      }
      await sleep(systemClock, waitMs, this.#stop).catch(() => undefined)
    }
  }

  /** Reports whether a failed renewal is worth retrying soon. */
  async #renew(): Promise<'done' | 'try soon' | 'try later'> {
    const sentMs = threadMs()
    try {
      const isKnown = await this.#link.renew(this.#worker, this.#leaseMs)
      if (isKnown) this.#memory.sentMs = sentMs
      else this.#memory.setGone()
      this.#everWorked = true
      this.#backoffMs = 0
      return 'done'
    } catch (error) {
      const lasts = isLasting(error)
      if (!this.#everWorked && (lasts || sentMs - this.#startedMs > this.#leaseMs)) {
        this.#everWorked = true
        this.#report({ type: 'useless', why: messageOf(error) })
      }
      return lasts ? 'try later' : 'try soon'
    }
  }

  /** Warns once for each block and again when patience ends: no other thread can report it now. */
  #tell(blockedMs: number): void {
    const { patienceMs, running } = this.#memory
    if (blockedMs <= this.#leaseMs) {
      this.#reported = 'nothing'
      return
    }
    const what = running === '' ? 'no job is running' : `running: ${running}`
    const since = `The event loop has been blocked for ${formatDuration(blockedMs)}; ${what}.`
    if (blockedMs >= patienceMs && patienceMs > 0 && this.#reported !== 'given up') {
      this.#reported = 'given up'
      warn(`${since} The leases of this worker are no longer renewed, and other workers may take its jobs.`)
    } else if (this.#reported === 'nothing') {
      this.#reported = 'blocked'
      warn(`${since} Its leases are renewed meanwhile; move the work into a separate thread or process.`)
    }
  }
}

/** Prints like `process.emitWarning`, but without the main thread, and without waiting for the reader. */
function warn(text: string): void {
  write(2, `(node:${process.pid}) HoldfastWarning: ${text}\n`, () => undefined)
}
