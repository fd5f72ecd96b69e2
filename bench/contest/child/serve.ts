/** One process of one contender: does what the bench asks over the channel, and ends when that closes. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  NORMAL,
  SMALL_BYTES,
  type Bulk,
  type CallName,
  type Calls,
  type ChildConfig,
  type Mark,
  type Message,
  type Payload,
  type Request,
} from '../protocol.ts'
import type { Library } from './contender.ts'
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
    const state = { stop: false, sent: Promise.resolve(0) }
    state.sent = pace(what, () => state.stop)
    pacing = state
    return Promise.resolve()
  },
  async stopPacing() {
    if (pacing === undefined) throw new Error('Nothing is paced.')
    pacing.stop = true
    return pacing.sent
  },
  async startWork(work) {
    tally.begin(work.handlerMs ?? 0)
    if (work.refill === true) tally.onEach(LEVEL_TURN, refill)
    stopWorker = await library.work(counted, work.concurrency)
  },
  async stopWork() {
    tally.onEach(LEVEL_TURN, () => undefined)
    await stopWorker?.()
    clearTimeout(progress)
    progress = undefined
    return tally.result()
  },
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

/** At each rate for a second; one that falls behind does not catch up. */
async function pace(
  { perSecond, level }: Parameters<Calls['startPacing']>[0],
  stopped: () => boolean,
): Promise<number> {
  const underWay = new Set<Promise<void>>()
  const beganMs = nowMs()
  let sent = 0
  while (!stopped()) {
    const rate = perSecond[Math.floor((nowMs() - beganMs) / 1_000) % perSecond.length] ?? 1
    // Not in step with anybody's polling; and a timer of less than a millisecond waits for one.
    const gapMs = (1_000 / rate) * (0.5 + Math.random())
    const atOnce = Math.max(1, Math.round(1.5 / gapMs))
    for (let count = 0; count < atOnce; count++) {
      const payload: Payload = { sentMs: nowMs(), pad: pads.one(SMALL_BYTES) }
      const enqueued = library
        .enqueue(payload, { level, delayMs: 0 })
        .finally(() => underWay.delete(enqueued))
      underWay.add(enqueued)
      sent++
    }
    await sleep(gapMs * atOnce)
  }
  await Promise.all(underWay)
  return sent
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
