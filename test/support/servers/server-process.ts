/**
 * A server as a child process, in its own folder, which also has its output. Neither outlives the test process. At exit
 * the server is signalled. A killed process (vitest kills a worker that hangs) runs no exit handler, so a small shell holds
 * the other end of a pipe: when the pipe closes, it ends the server and removes the folder.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { makeFolder, serverAccount, type Account } from './folder.ts'

const POLL_MS = 20

// Each line says which process runs now, an empty one that none does. A frozen process takes the signal once it goes
// on. In a container without an init, the dead stay visible as zombies (Z).
const GUARD = `
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then
  kill -QUIT "$pid"; kill -CONT "$pid"
  tries=0
  while kill -0 "$pid" && ! grep -q ') Z ' "/proc/$pid/stat" && [ $tries -lt 100 ]; do
    tries=$((tries + 1)); sleep 0.1
  done
fi
rm -rf "$1"
`

const alive = new Set<ServerProcess>()

process.on('exit', () => {
  for (const server of alive) server.end('SIGQUIT')
})

export class ServerProcess {
  readonly folder: string
  readonly account: Account | undefined
  readonly #guard: Socket
  #child: ChildProcess | undefined
  #ended: Promise<void> = Promise.resolve()
  #logStart = 0
  #failure: Error | undefined

  private constructor(folder: string, account: Account | undefined) {
    this.folder = folder
    this.account = account
    // In a group of its own, like the server: Ctrl-C is for us.
    const guard = spawn('sh', ['-c', GUARD, 'guard', folder], {
      cwd: '/',
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    })
    guard.on('error', () => undefined)
    guard.unref()
    this.#guard = guard.stdin as Socket
    this.#guard.on('error', () => undefined)
    this.#guard.unref()
  }

  static async prepare(name: string): Promise<ServerProcess> {
    const account = serverAccount()
    return new ServerProcess(await makeFolder(name, account), account)
  }

  get running(): boolean {
    return this.#child !== undefined
  }

  spawn(command: string, args: readonly string[]): void {
    if (this.running) throw new Error(`${command} is started, but another process still runs here.`)
    const log = openSync(this.#logPath, 'a')
    this.#logStart = statSync(this.#logPath).size
    const child = spawn(command, args, {
      ...this.account,
      // Ours may be closed to the account, and its PGPORT and the like are not for this server.
      cwd: this.folder,
      env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', log, log],
      detached: true,
    })
    closeSync(log)
    this.#watch(child)
  }

  /** Runs a command. If it fails, rejects with its output. */
  async run(command: string, args: readonly string[]): Promise<void> {
    this.spawn(command, args)
    const child = this.#child
    await this.ended()
    if (child?.exitCode !== 0) throw this.failure(`${command} failed`)
  }

  /** Waits for `isReady`. Rejects with the output of the server if it exits before that, or at the deadline. */
  async ready(isReady: () => Promise<boolean>, deadlineMs: number): Promise<void> {
    const deadline = performance.now() + deadlineMs
    while (this.running) {
      if (await isReady()) return
      if (performance.now() > deadline) {
        await this.stop('SIGQUIT')
        throw this.failure(`was not ready after ${Math.round(deadlineMs)} ms`)
      }
      await Promise.race([this.ended(), delay(POLL_MS)])
    }
    throw this.failure('ended before it was ready')
  }

  signal(signal: NodeJS.Signals): void {
    if (this.#child?.kill(signal) !== true) throw new Error('The server does not run.')
  }

  /** Resolves when the process has ended, at once if none runs. */
  async ended(): Promise<void> {
    this.#child?.ref()
    await this.#ended
  }

  /** Sends the signal, and resumes a frozen process so that it arrives. */
  end(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
    this.#child?.kill('SIGCONT')
  }

  async stop(signal: NodeJS.Signals, deadlineMs = 30_000): Promise<void> {
    this.end(signal)
    const abort = new AbortController()
    const late = delay(deadlineMs, 'late', { signal: abort.signal }).catch(() => undefined)
    const outcome = await Promise.race([this.ended(), late])
    abort.abort()
    if (outcome !== 'late') return
    this.end('SIGKILL')
    throw this.failure(`still ran ${deadlineMs} ms after ${signal}`)
  }

  /** Ends the process and removes the folder. Safe to call again. */
  async dispose(): Promise<void> {
    try {
      await this.stop('SIGQUIT')
    } finally {
      this.#guard.end()
      await rm(this.folder, { recursive: true, force: true, maxRetries: 5 })
    }
  }

  /** The output of the last process. */
  log(): string {
    return readFileSync(this.#logPath).subarray(this.#logStart).toString()
  }

  failure(what: string): Error {
    return new Error(`The server ${what}. It printed:\n${this.log()}`, { cause: this.#failure })
  }

  get #logPath(): string {
    return join(this.folder, 'log')
  }

  #watch(child: ChildProcess): void {
    this.#child = child
    this.#failure = undefined
    alive.add(this)
    this.#guard.write(`${child.pid ?? ''}\n`)
    child.unref()
    this.#ended = once(child, 'exit')
      .catch((error: unknown) => {
        this.#failure = error as Error
      })
      .then(() => {
        this.#child = undefined
        alive.delete(this)
        this.#guard.write('\n')
      })
  }
}
