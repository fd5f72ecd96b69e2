/** `holdfast demo`: a producer, a worker and a view of both, on the store in HOLDFAST_STORE or the embedded one. */
import type { Holdfast } from '../../holdfast.ts'
import type { RunningWorker } from '../../hub.ts'
import { Bell } from '../../std/bell.ts'
import { EXIT, type ExitCode } from '../exit.ts'
import type { Io } from '../io.ts'
import { StopSignals } from '../stop-signals.ts'
import { demoHoldfast, demoRecipes, type DemoQueue } from './jobs.ts'
import { Producer } from './producer.ts'
import { Screen } from './screen.ts'
import type { Snapshot } from './snapshot.ts'
import { DemoStats } from './demo-stats.ts'
import { plainLine, summary, unfinished, view } from './view.ts'

export interface DemoFlags {
  readonly seconds?: number
  readonly rate?: number
  readonly plain?: boolean
}

const DEFAULT_RATE = 12
const FRAME_MS = 250
const LINE_MS = 1_000
/** Shorter than the longest job, so that the summary shows released jobs. */
const DRAIN_MS = 2_000

interface Show {
  readonly hf: Holdfast<DemoQueue, object>
  readonly stats: DemoStats
  readonly signals: StopSignals
  readonly store: string
  readonly found: number
}

export async function demo(flags: DemoFlags, io: Io): Promise<ExitCode> {
  const rate = flags.rate ?? DEFAULT_RATE
  const slots = slotsFor(rate)
  const signals = new StopSignals(io)
  const { hf, store } = demoHoldfast(io)
  const stopUnlessStopping = (): void => {
    if (!signals.stopping) signals.ask()
  }
  // The reader is gone, as after `| head`: stop drawing.
  io.stdout.on?.('error', stopUnlessStopping)
  try {
    const producer = new Producer(io, demoRecipes(hf, io), rate)
    const found = unfinished(await hf.queues())
    const show: Show = { hf, stats: new DemoStats(io.clock, slots), signals, store, found }
    show.stats.listenTo(hf)
    const worker = await hf.work({ concurrency: slots, grace: DRAIN_MS })
    producer.start()
    const { seconds } = flags
    const cancelEnd = seconds === undefined ? undefined : io.clock.after(seconds * 1_000, stopUnlessStopping)
    const stopped = stop(producer, worker, signals)
    const plain = flags.plain === true || io.stdout.isTTY !== true
    const last = await (plain ? showLines(show, io, stopped) : showScreen(show, io, stopped))
    cancelEnd?.()
    io.stdout.write(`${summary(last).join('\n')}\n`)
    return signals.hurried ? EXIT.interrupted : EXIT.ok
  } finally {
    await hf.close()
    signals.close()
    io.stdout.off?.('error', stopUnlessStopping)
  }
}

/** A demo job takes about a quarter of a second: this is twice the number of slots needed on average. */
function slotsFor(rate: number): number {
  return Math.min(500, Math.max(6, Math.ceil(rate / 2)))
}

async function stop(producer: Producer, worker: RunningWorker, signals: StopSignals): Promise<void> {
  await signals.stop
  await producer.stop()
  await Promise.race([worker.stop(), signals.hurry.then(() => worker.stop({ drain: 0 }))])
}

async function showScreen(show: Show, io: Io, stopped: Promise<void>): Promise<Snapshot> {
  const screen = new Screen(io.stdout)
  screen.enter()
  try {
    const draw = (snapshot: Snapshot): void => screen.draw(view(snapshot, screen.size))
    return await everyFrame(show, io, { everyMs: FRAME_MS, draw }, stopped)
  } finally {
    screen.leave()
  }
}

function showLines(show: Show, io: Io, stopped: Promise<void>): Promise<Snapshot> {
  const draw = (snapshot: Snapshot): void => {
    // There are no figures before the first second has passed.
    if (snapshot.upMs >= LINE_MS / 2) io.stdout.write(`${plainLine(snapshot)}\n`)
  }
  return everyFrame(show, io, { everyMs: LINE_MS, draw }, stopped)
}

interface Frames {
  readonly everyMs: number
  draw(snapshot: Snapshot): void
}

/** Draws until the stop completes; returns the last snapshot. */
async function everyFrame(show: Show, io: Io, frames: Frames, stopped: Promise<void>): Promise<Snapshot> {
  const bell = new Bell(io.clock)
  let over = false
  const stopping = stopped.finally(() => {
    over = true
    bell.ring()
  })
  void show.signals.stop.then(() => bell.ring())
  const redraw = (): void => bell.ring()
  io.stdout.on?.('resize', redraw)
  try {
    while (!over) {
      frames.draw(await snapshotOf(show))
      await bell.wait(frames.everyMs)
    }
    await stopping
    return await snapshotOf(show)
  } finally {
    io.stdout.off?.('resize', redraw)
  }
}

async function snapshotOf({ hf, stats, signals, store, found }: Show): Promise<Snapshot> {
  return { store, found, stopping: signals.stopping, queues: await hf.queues(), ...stats.read() }
}
