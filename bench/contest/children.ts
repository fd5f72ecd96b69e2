/** The processes of the contenders. None outlives the bench: not its end, not its failure, not Ctrl-C. */
import { fork, type ChildProcess } from 'node:child_process'
import type { Answer, Argument, CallName, ChildConfig, Message, Request } from './protocol.ts'

const CALL_MS = 900_000
const LEAVE_MS = 10_000

const alive = new Set<Child>()
process.on('exit', () => {
  for (const child of alive) child.kill()
})

/** What a process is started from. */
export interface ChildProgram {
  /** The Node that it runs on, and its flags. */
  readonly node: string
  readonly flags: readonly string[]
  /** The path of its code. */
  readonly main: string
  /** Variables of its environment, besides those that all have. */
  readonly env?: Readonly<Record<string, string>>
}

interface Pending {
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: Error) => void
}

export class Child {
  /** Handlers started, as last heard. */
  started = 0
  onProgress: () => void = () => undefined
  readonly #name: string
  readonly #process: ChildProcess
  readonly #pending = new Map<number, Pending>()
  readonly #ended: Promise<void>
  #nextId = 0

  constructor({ node, flags, main, env = {} }: ChildProgram, config: ChildConfig) {
    this.#name = config.contender
    this.#process = fork(main, [JSON.stringify(config)], {
      execPath: node,
      execArgv: [...flags],
      env: { ...childEnvironment(), ...env },
      // What they print is no result.
      stdio: ['ignore', 2, 2, 'ipc'],
    })
    alive.add(this)
    this.#process.on('message', (message: Message) => this.#hear(message))
    this.#process.on('error', (error) => this.#refuseAll(error))
    this.#ended = new Promise((resolve) => {
      this.#process.on('exit', (code, signal) => {
        alive.delete(this)
        this.#refuseAll(new Error(`A process of ${this.#name} ended with ${signal ?? code}.`))
        resolve()
      })
    })
  }

  call<Name extends CallName>(
    name: Name,
    ...[argument]: undefined extends Argument<Name> ? [] : [Argument<Name>]
  ): Promise<Answer<Name>> {
    const id = this.#nextId++
    return new Promise<Answer<Name>>((resolve, reject) => {
      const late = (): void => {
        this.#pending.delete(id)
        reject(new Error(`${this.#name} did not answer ${name} within ${CALL_MS / 1_000} s.`))
      }
      const timer = setTimeout(late, CALL_MS)
      this.#pending.set(id, {
        resolve: (answer) => {
          clearTimeout(timer)
          resolve(answer as Answer<Name>)
        },
        reject: (error) => {
          clearTimeout(timer)
          reject(error)
        },
      })
      this.#process.send({ id, name, argument } satisfies Request, (error) => {
        if (error !== null) this.#take(id)?.reject(error)
      })
    })
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }

  /** It leaves at once, and may only still write its profile; what must end in order is asked to `close` first. */
  async dispose(): Promise<void> {
    if (this.#process.connected) this.#process.disconnect()
    const timer = setTimeout(() => this.kill(), LEAVE_MS)
    await this.#ended
    clearTimeout(timer)
  }

  #hear(message: Message): void {
    switch (message.type) {
      case 'progress':
        this.started = message.started
        this.onProgress()
        break
      case 'answer':
        this.#take(message.id)?.resolve(message.answer)
        break
      case 'failed':
        this.#take(message.id)?.reject(new Error(`${this.#name}: ${message.error}`))
        break
    }
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    return pending
  }

  #refuseAll(error: Error): void {
    for (const id of this.#pending.keys()) this.#take(id)?.reject(error)
  }
}

/** Neither npm's settings nor ours: what a library reads from its environment is not what we mean to measure. */
function childEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR } = process.env
  return { PATH, HOME, NODE_ENV: 'production', ...(TMPDIR === undefined ? {} : { TMPDIR }) }
}
