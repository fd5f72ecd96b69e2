/** One process of one contender: does what the bench asks over the channel, and ends when that closes. */
import {
  NORMAL,
  SMALL_BYTES,
  type Bulk,
  type CallName,
  type Calls,
  type ChildConfig,
  type KeepWaiting,
  type Mark,
  type Message,
  type Payload,
  type Request,
} from '../protocol.ts'
import type { Library } from './contender.ts'
import { holdSteady, keepWaiting, pace } from './load.ts'
import { Pads } from './pads.ts'
import { nowMs, Tally } from './tally.ts'

type Answers = {
  [Name in CallName]: (argument: Parameters<Calls[Name]>[0]) => Promise<ReturnType<Calls[Name]>>
}

const LEVEL_TURN = 1_000
/** Payloads are made in such portions, between the times that are measured. */
const PORTION = 100_000
const PROGRESS_MS = 25

/** Set before anything is asked. */
let library: Library
const pads = new Pads()
const tally = new Tally()
let stopWorker: (() => Promise<void>) | undefined
let progress: NodeJS.Timeout | undefined
let pacing: { stop: boolean; readonly sent: Promise<number> } | undefined
let refilling: { stop: boolean; readonly ended: Promise<void> } | undefined

const answers: Answers = {
  open: () => library.open(),
  close: () => library.close(),
  mark: () => Promise.resolve(mark()),
  enqueueMany,
  async enqueueSingly({ jobs, bytes, atOnce }) {
    const payloads = pads.payloads(jobs, bytes)
    const beforeMs = nowMs()
    let next = 0
    const lane = async (): Promise<void> => {
      for (let payload = payloads[next++]; payload !== undefined; payload = payloads[next++])
        await library.enqueue(payload, { level: NORMAL, delayMs: 0 })
    }
    await Promise.all(Array.from({ length: atOnce }, lane))
    return nowMs() - beforeMs
  },
  startPacing(what) {
    return begin((stopped) => pace(library, pads, what, stopped))
  },
  startSteady(what) {
    return begin((stopped) => holdSteady(library, pads, what, stopped))
  },
  async stopPacing() {
    if (pacing === undefined) throw new Error('Nothing is paced.')
    pacing.stop = true
    return pacing.sent
  },
  async runFirstJob() {
    if (library.runFirstJob === undefined) throw new Error('This library does not tell what is completed.')
    tally.begin(0)
    await library.runFirstJob(counted)
    return nowMs()
  },
  async startWork(work) {
    tally.begin(work.handlerMs ?? 0)
    if (work.refill === true) tally.onEach(LEVEL_TURN, refill)
    stopWorker = await library.work(counted, work.concurrency)
    if (work.keepWaiting !== undefined) startRefilling(work.keepWaiting)
  },
  async stopWork() {
    tally.onEach(LEVEL_TURN, () => undefined)
    if (refilling !== undefined) refilling.stop = true
    await refilling?.ended
    await stopWorker?.()
    clearTimeout(progress)
    progress = undefined
    return tally.result()
  },
  takeWaits: () => Promise.resolve(tally.takeWaits()),
}

function begin(send: (stopped: () => boolean) => Promise<number>): Promise<void> {
  const state = { stop: false, sent: Promise.resolve(0) }
  state.sent = send(() => state.stop)
  state.sent.catch(fail)
  pacing = state
  return Promise.resolve()
}

function startRefilling(what: KeepWaiting): void {
  const state = { stop: false, ended: Promise.resolve() }
  state.ended = keepWaiting(library, pads, what, { started: () => tally.started, stopped: () => state.stop })
  state.ended.catch(fail)
  refilling = state
}

async function enqueueMany({ jobs, bytes, levels = [NORMAL], delayMs = 0 }: Bulk): Promise<number> {
  let tookMs = 0
  const turn = levels.length === 1 ? PORTION : LEVEL_TURN
  for (let done = 0; done < jobs; done += PORTION) {
    const payloads = pads.payloads(Math.min(PORTION, jobs - done), bytes)
    const beforeMs = nowMs()
    for (let from = 0; from < payloads.length; from += turn) {
      const level = levels[((done + from) / turn) % levels.length] ?? NORMAL
      await library.enqueueMany(payloads.slice(from, from + turn), { level, delayMs })
    }
    tookMs += nowMs() - beforeMs
  }
  return tookMs
}

/** A timer only while there is something to tell: an idle worker shall cost what it costs. */
function counted(payload: Payload): void | Promise<void> {
  progress ??= setTimeout(tellProgress, PROGRESS_MS)
  return tally.handler(payload)
}

function tellProgress(): void {
  progress = undefined
  say({ type: 'progress', started: tally.started })
}

function refill(): void {
  const payloads = pads.payloads(LEVEL_TURN, SMALL_BYTES)
  library.enqueueMany(payloads, { level: NORMAL, delayMs: 0 }).catch(fail)
}

function mark(): Mark {
  const { user, system } = process.cpuUsage()
  return {
    atMs: nowMs(),
    cpuMicros: user + system,
    rssBytes: process.memoryUsage.rss(),
    started: tally.started,
  }
}

function say(message: Message): void {
  process.send?.(message)
}

function fail(error: unknown): void {
  console.error(error)
  process.exit(1)
}

/** The libraries of a store, by contender. */
export type Makers = ReadonlyMap<string, (config: ChildConfig) => Promise<Library>>

export async function serve(makers: Makers): Promise<void> {
  const config = JSON.parse(process.argv[2] ?? '{}') as ChildConfig
  const make = makers.get(config.contender)
  if (make === undefined) throw new Error(`There is no contender "${config.contender}" here.`)
  library = await make(config)
  process.on('message', ({ id, name, argument }: Request) => {
    const answering = (answers[name] as (argument: unknown) => Promise<unknown>)(argument)
    answering.then(
      (answer) => say({ type: 'answer', id, answer: answer ?? null }),
      (error: unknown) =>
        say({
          type: 'failed',
          id,
          error: error instanceof Error ? (error.stack ?? error.message) : String(error),
        }),
    )
  })
  process.on('disconnect', () => process.exit(0))
  // Ctrl-C reaches the whole group; the bench ends its children itself.
  process.on('SIGINT', () => undefined)
}
