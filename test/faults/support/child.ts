/**
 * A real process under test. A test awaits its output lines, each with a deadline. Processes that a test leaves running are
 * killed after it, by their process group.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterEach } from 'vitest'
import { root } from '../../support/tree.ts'

const DEADLINE_MS = 10_000

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

const alive = new Set<Child>()

afterEach(async () => {
  await Promise.all([...alive].map((child) => child.killNow()))
})

export interface ChildOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
}

export class Child {
  readonly out: string[] = []
  readonly err: string[] = []
  readonly #process: ChildProcess
  readonly #waiting = new Set<() => void>()
  readonly #ended: Promise<Ended>

  constructor(command: string, args: readonly string[], { cwd, env }: ChildOptions) {
    const { NO_COLOR: _, FORCE_COLOR: __, VITEST: ___, NODE_ENV: ____, ...clean } = process.env
    // In its own group: signals to the test do not reach it, and processes that it leaves behind can be found.
    this.#process = spawn(command, args, { cwd, env: { ...clean, ...env }, detached: true })
    alive.add(this)
    this.#read('stdout', this.out)
    this.#read('stderr', this.err)
    this.#ended = once(this.#process, 'close').then((args) => {
      const [code, signal] = args as [number | null, NodeJS.Signals | null]
      alive.delete(this)
      this.#wake()
      return { code, signal }
    })
  }

  get pid(): number {
    const { pid } = this.#process
    if (pid === undefined) throw new Error('the process did not start')
    return pid
  }

  /** The first matching line of either output, including lines printed before the call. */
  async line(pattern: RegExp | string): Promise<string> {
    const matches = (line: string): boolean =>
      typeof pattern === 'string' ? line.includes(pattern) : pattern.test(line)
    const found = (): string | undefined => [...this.out, ...this.err].find(matches)
    await this.#until(`a line like ${String(pattern)}`, () => found() !== undefined)
    return found() ?? ''
  }

  /** The first JSON line on stderr with these fields. */
  async logged(fields: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>> {
    const found = (): Record<string, unknown> | undefined =>
      this.logs().find((log) => Object.entries(fields).every(([name, value]) => log[name] === value))
    await this.#until(`a log line with ${JSON.stringify(fields)}`, () => found() !== undefined)
    return found() ?? {}
  }

  /** Every JSON line on stderr. */
  logs(): Record<string, unknown>[] {
    return this.err
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  /** Closes the reading end of its stdout, as `| head` does. */
  hangUp(): void {
    this.#process.stdout?.destroy()
  }

  ended(): Promise<Ended> {
    return this.#before(this.#ended, 'its end')
  }

  /** Whether any process of its group is still alive. */
  groupLives(): boolean {
    try {
      process.kill(-this.pid, 0)
      return true
    } catch {
      return false
    }
  }

  async killNow(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#ended
  }

  #read(name: 'stdout' | 'stderr', into: string[]): void {
    const stream = this.#process[name]
    if (stream === null) throw new Error(`no ${name}`)
    createInterface({ input: stream }).on('line', (line) => {
      into.push(line)
      this.#wake()
    })
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
  }

  async #until(what: string, done: () => boolean): Promise<void> {
    while (!done()) {
      if (!alive.has(this)) throw this.#failure(`ended without ${what}`)
      let wake = (): void => undefined
      const woken = new Promise<void>((resolve) => (wake = resolve))
      this.#waiting.add(wake)
      await this.#before(woken, what).finally(() => this.#waiting.delete(wake))
    }
  }

  async #before<T>(work: Promise<T>, what: string): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(this.#failure(`did not come to ${what}`)), DEADLINE_MS)
    })
    return Promise.race([work, late]).finally(() => clearTimeout(timer))
  }

  #failure(message: string): Error {
    return new Error(
      `The process ${message}.\nstdout:\n${this.out.join('\n')}\nstderr:\n${this.err.join('\n')}`,
    )
  }
}

/** The built command, as `npx holdfast` runs it. */
export function holdfastCli(args: readonly string[], options: ChildOptions): Child {
  return new Child(process.execPath, [`${root}dist/cli/bin.js`, ...args], options)
}
