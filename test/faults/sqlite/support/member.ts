/** A process that shares a store with others, as the test holds it: asks it to act, hears of its jobs, and kills it. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { root } from '../../../support/tree.ts'
import type { Acts, Message, Request, Told } from './program.ts'

const PROGRAM = fileURLToPath(new URL('program.ts', import.meta.url))
const NODE = [process.execPath, '--import', 'tsx', PROGRAM] as const
/** Far beyond what anything here takes, because the machine may be loaded. */
const DEADLINE_MS = 30_000

interface Pending {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

export class MemberError extends Error {
  readonly code: string | null
  readonly hint: string

  constructor(code: string | null, message: string, hint: string) {
    super(message)
    this.code = code
    this.hint = hint
  }
}

const alive = new Set<Member>()

export class Member {
  readonly told: Told[] = []
  readonly #process: ChildProcess
  readonly #ended: Promise<unknown>
  readonly #pending = new Map<number, Pending>()
  readonly #waiting = new Set<() => void>()
  #said = ''
  #lastId = 0

  private constructor([command = '', ...args]: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.#process = spawn(command, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: { ...process.env, ...env },
    })
    alive.add(this)
    this.#ended = once(this.#process, 'exit').then(() => {
      alive.delete(this)
      for (const { reject } of this.#pending.values())
        reject(new Error(`The process ended. It said:\n${this.#said}`))
      this.#pending.clear()
    })
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.on('data', (chunk: Buffer) => (this.#said += chunk.toString()))
    this.#process.on('message', (message: Message) => this.#hear(message))
  }

  /** `node`: another Node than the one that runs the tests. */
  static start(node: string = process.execPath, env: NodeJS.ProcessEnv = {}): Member {
    return new Member([node, ...NODE.slice(1)], env)
  }

  /** In namespaces of its own, as in another container of this host. */
  static startApart(): Member {
    const renamed = `hostname elsewhere && exec ${NODE.map((part) => JSON.stringify(part)).join(' ')}`
    return new Member(['unshare', ...APART, 'sh', '-c', renamed])
  }

  static async withStore(directory: string, member = Member.start()): Promise<Member> {
    await member.do('open', directory)
    return member
  }

  static async endAll(): Promise<void> {
    await Promise.all([...alive].map((member) => member.kill()))
  }

  /** Of `unshare`, if it was started apart. */
  get pid(): number {
    return this.#process.pid ?? 0
  }

  async do<Act extends keyof Acts>(
    act: Act,
    ...args: Parameters<Acts[Act]>
  ): Promise<Awaited<ReturnType<Acts[Act]>>> {
    const id = ++this.#lastId
    const answer = new Promise<unknown>((resolve, reject) => this.#pending.set(id, { resolve, reject }))
    this.#process.send({ id, act, args } satisfies Request)
    return (await this.#inTime(answer, act)) as Awaited<ReturnType<Acts[Act]>>
  }

  /** What it has told or will tell of a job. */
  async hears(type: Told['type'], job: string): Promise<Told> {
    for (;;) {
      const found = this.told.find((told) => told.type === type && told.job === job)
      if (found !== undefined) return found
      let wake = (): void => undefined
      const woken = new Promise<void>((resolve) => (wake = resolve))
      this.#waiting.add(wake)
      await this.#inTime(woken, `${type} ${job}`).finally(() => this.#waiting.delete(wake))
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#ended
  }

  #hear(message: Message): void {
    if (message.type === 'began' || message.type === 'aborted') {
      this.told.push(message)
      for (const wake of this.#waiting) wake()
      return
    }
    const pending = this.#pending.get(message.id)
    this.#pending.delete(message.id)
    if (message.type === 'answer') pending?.resolve(message.value)
    else pending?.reject(new MemberError(message.code, message.message, message.hint))
  }

  async #inTime<T>(work: Promise<T>, what: string): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`Waited in vain for ${what}. It said:\n${this.#said}`)),
        DEADLINE_MS,
      )
    })
    return Promise.race([work, late]).finally(() => clearTimeout(timer))
  }
}

const APART = ['--pid', '--uts', '--fork', '--kill-child', '--mount-proc'] as const

/** Why no process can be started apart here; empty if it can. */
export function apartMissing(): string {
  if (process.platform !== 'linux') return 'namespaces are a thing of Linux'
  const tried = spawnSync('unshare', [...APART, 'hostname', 'elsewhere'], { encoding: 'utf8' })
  if (tried.error !== undefined) return 'unshare is not installed'
  return tried.status === 0 ? '' : 'only root may make namespaces here'
}
