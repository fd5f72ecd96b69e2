/** One of the processes that share a store: does what the test sends it, and tells what its jobs do. See member.ts. */
import { holdfast, type Holdfast, type WorkOptions } from 'holdfast'
import { join } from 'node:path'
import { loadDriver, type Database } from '../../../../src/stores/sqlite/driver.ts'
import { sqliteStore } from '../../../../src/stores/sqlite/index.ts'
import { anything } from '../../support/behaviour.ts'

/** `hold`: the handler ends when it is aborted, unless its process was told to hold nothing. */
export interface Payload {
  readonly hold?: boolean
  readonly text?: string
}

/** What is told of a job, with the time by the clock of the machine. */
export type Told =
  | { readonly type: 'began'; readonly job: string; readonly atMs: number }
  | { readonly type: 'aborted'; readonly job: string; readonly atMs: number }

export interface Request {
  readonly id: number
  readonly act: string
  readonly args: readonly unknown[]
}

interface MemberFailure {
  readonly code: string | null
  readonly hint: string
}

export type Message =
  | Told
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | {
      readonly type: 'failed'
      readonly id: number
      readonly code: string | null
      readonly message: string
      readonly hint: string
    }

const tell = (message: Message): void => void process.send?.(message)
const nowMs = (): number => performance.timeOrigin + performance.now()

let hf: Holdfast<'default', object> | undefined
let work: ReturnType<typeof define> | undefined
let holds = true
let locking: Database | undefined

function define(on: Holdfast<'default', object>) {
  return on.job({
    name: 'work',
    input: anything<Payload>(),
    async run({ input, job, signal }) {
      if (input.hold !== true) return
      tell({ type: 'began', job: job.id, atMs: nowMs() })
      if (!holds) return
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      tell({ type: 'aborted', job: job.id, atMs: nowMs() })
      signal.throwIfAborted()
    },
  })
}

function opened(): { hf: Holdfast<'default', object>; work: ReturnType<typeof define> } {
  if (hf === undefined || work === undefined) throw new Error('No store is open.')
  return { hf, work }
}

const ACTS = {
  async open(directory: string): Promise<void> {
    hf = holdfast({ store: sqliteStore({ directory, onNotice: () => undefined }), logger: false })
    work = define(hf)
    await hf.queues()
  },
  /** Resolves to the id of the worker. */
  async work(options: WorkOptions<'default'>): Promise<string> {
    const running = opened().hf
    const started = new Promise<string>((resolve) => {
      running.on('worker.started', ({ worker }) => resolve(worker))
    })
    await running.work(options)
    return started
  },
  async enqueue(count: number, payload: Payload): Promise<{ ids: readonly string[]; atMs: number }> {
    const { hf: to, work: job } = opened()
    const atMs = nowMs()
    const { ids } = await to.enqueueMany(Array.from({ length: count }, () => job.with(payload)))
    return { ids, atMs }
  },
  async cancel(id: string): Promise<number> {
    const atMs = nowMs()
    await (await opened().work.get(id))?.cancel()
    return atMs
  },
  holdNothing(): Promise<void> {
    holds = false
    return Promise.resolve()
  },
  async pause(): Promise<void> {
    await opened().hf.pause('default')
  },
  async resume(): Promise<number> {
    const atMs = nowMs()
    await opened().hf.resume('default')
    return atMs
  },
  async close(): Promise<void> {
    await hf?.close()
    hf = undefined
  },
  async openAndClose(directory: string): Promise<void> {
    await ACTS.open(directory)
    await ACTS.enqueue(1, {})
    await ACTS.close()
  },
  /** Begins to write, as a store does, and does not end it. */
  async lock(directory: string): Promise<void> {
    const { DatabaseSync } = await loadDriver()
    locking = new DatabaseSync(join(directory, 'holdfast.db'))
    locking.exec(`begin immediate; insert into holdfast_queue (name) values ('locked')`)
  },
  commit(): Promise<void> {
    locking?.exec('commit')
    return Promise.resolve()
  },
}

export type Acts = typeof ACTS

async function answer({ id, act, args }: Request): Promise<void> {
  try {
    const run = ACTS[act as keyof Acts] as (...args: readonly unknown[]) => Promise<unknown>
    tell({ type: 'answer', id, value: await run(...args) })
  } catch (error) {
    const { code = null, message, hint = '' } = error as Partial<MemberFailure> & Error
    tell({ type: 'failed', id, code, message, hint })
  }
}

// Nobody is left to stop us once the test is gone.
process.on('disconnect', () => process.exit(1))
process.on('message', (request: Request) => void answer(request))
