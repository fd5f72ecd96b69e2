/** A worker in a process of its own, by the built command, for the soak to kill. It ends with the soak, however that ends. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { root } from '../../support/tree.ts'
import type { FromWorker } from './kill-work.ts'
import type { FromScheduler } from './schedule-work.ts'

const START_MS = 60_000

export interface WorkerProcessOptions {
  /** What it loads: a file with jobs. */
  readonly jobs: string
  readonly url: string
  readonly leaseMs: number
  readonly slots: number
  readonly env?: Readonly<Record<string, string>>
  /** Each incarnation, as soon as it is known. */
  readonly onWorker?: (id: string) => void
  /** What it says of its schedules. */
  readonly onScheduler?: (message: FromScheduler) => void
}

export class WorkerProcess {
  readonly name: string
  /** Its incarnations, the newest last. */
  readonly workers: string[] = []
  /** Attempts whose lease it had lost: what it had to say of them, nobody took. */
  lost = 0
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  #said = ''

  constructor(name: string, options: WorkerProcessOptions) {
    const { jobs, url, leaseMs, slots, env = {}, onWorker, onScheduler } = options
    this.name = name
    const limits = [
      '--lease',
      `${leaseMs}ms`,
      '--concurrency',
      String(slots),
      '--poll',
      '200ms',
      '--drain',
      '5s',
    ]
    const args = [`${root}dist/cli/bin.js`, 'work', jobs, '--log', 'json', '--log-level', 'error', ...limits]
    this.#child = spawn(process.execPath, args, {
      env: { ...process.env, ...env, HOLDFAST_STORE: url },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#ended = once(this.#child, 'exit')
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk: Buffer) => (this.#said += chunk.toString()))
    this.#child.on('message', (message: FromWorker | FromScheduler) => {
      if (message.type === 'lost') this.lost++
      else if (message.type === 'worker') {
        this.workers.push(message.id)
        onWorker?.(message.id)
      } else onScheduler?.(message)
    })
  }

  /** Resolves when the store knows it. */
  async started(): Promise<void> {
    const late = AbortSignal.timeout(START_MS)
    const next = (): Promise<unknown> => once(this.#child, 'message', { signal: late })
    while (this.workers.length === 0) {
      const over = await Promise.race([this.#ended.then(() => true), next().then(() => false)])
      if (over) throw new Error(`${this.name} did not start. It said:\n${this.#said}`)
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended
  }

  /** In good order. Rejects where it did not end so. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    await this.#ended
    if (this.#child.exitCode !== 0) throw new Error(`${this.name} ended badly. It said:\n${this.#said}`)
  }
}
