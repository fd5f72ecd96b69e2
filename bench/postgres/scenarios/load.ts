/** A producer and a worker in one process that go on for a while: how fast, how soon, and at what cost. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Child } from '../../contest/children.ts'
import { usage, type Usage } from '../../contest/drain.ts'
import type { Figures } from '../../contest/figures.ts'
import type { KeepWaiting, Work } from '../../contest/protocol.ts'
import type { LoadFigure } from '../figures.ts'
import type { PostgresStage } from './scenario.ts'

const BYTES = 256
const HANDLER_MS = 1
/** The first jobs come one by one; connections, plans and compiled code come to be. */
const WARM_UP_MS = 3_000

const SATURATING: KeepWaiting = { jobs: 4_000, bytes: BYTES, sampleEvery: 16 }

/** As many jobs as the worker can run: 4,000 are kept waiting. */
export function saturating(concurrency: number, sampleEvery = SATURATING.sampleEvery): Work {
  return { concurrency, handlerMs: HANDLER_MS, keepWaiting: { ...SATURATING, sampleEvery } }
}

/** Jobs enqueued a few at a time, at a rate that the worker could exceed. */
export interface Steady {
  readonly perSecond: number
  readonly concurrency: number
}

/** What happened in a span of time. */
export interface Span {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export class Load {
  readonly #stage: PostgresStage
  readonly #worker: Child
  readonly #steady: boolean

  private constructor(stage: PostgresStage, worker: Child, steady: boolean) {
    this.#stage = stage
    this.#worker = worker
    this.#steady = steady
  }

  /** Resolves when it has warmed up. */
  static async start(stage: PostgresStage, load: Work | Steady): Promise<Load> {
    const worker = await stage.child({ history: true })
    const isSteady = 'perSecond' in load
    await worker.call('startWork', isSteady ? { concurrency: load.concurrency, handlerMs: HANDLER_MS } : load)
    if (isSteady) await worker.call('startSteady', { perSecond: load.perSecond, bytes: BYTES })
    await sleep(WARM_UP_MS)
    await worker.call('takeWaits')
    return new Load(stage, worker, isSteady)
  }

  usage(): Promise<Usage> {
    return usage(this.#stage, [this.#worker])
  }

  async span(seconds: number): Promise<Span> {
    const before = await this.#worker.call('mark')
    await sleep(seconds * 1_000)
    const after = await this.#worker.call('mark')
    const { p50Ms, p99Ms } = await this.#worker.call('takeWaits')
    return {
      perSecond: (after.started - before.started) / ((after.atMs - before.atMs) / 1_000),
      p50Ms,
      p99Ms,
    }
  }

  /** Jobs a second in each of some parts of equal length. Leaves the waits for `waits`. */
  async rates(seconds: number, parts: number): Promise<number[]> {
    const rates: number[] = []
    let before = await this.#worker.call('mark')
    for (let part = 0; part < parts; part++) {
      await sleep((seconds * 1_000) / parts)
      const after = await this.#worker.call('mark')
      rates.push((after.started - before.started) / ((after.atMs - before.atMs) / 1_000))
      before = after
    }
    return rates
  }

  waits(): Promise<{ readonly p50Ms: number; readonly p99Ms: number }> {
    return this.#worker.call('takeWaits')
  }

  async stop(): Promise<void> {
    if (this.#steady) await this.#worker.call('stopPacing')
    await this.#worker.call('stopWork')
    await this.#worker.call('close')
    await this.#worker.dispose()
  }
}

/** A load for its whole time, in thirds: one that slows down shows in the last. */
export async function loadFigures<Name extends string>(
  name: Name,
  stage: PostgresStage,
  load: Work | Steady,
): Promise<Figures<LoadFigure<Name>>> {
  const running = await Load.start(stage, load)
  const before = await running.usage()
  const rates = await running.rates(stage.sizes.loadSeconds, 3)
  const after = await running.usage()
  const waits = await running.waits()
  await running.stop()
  const jobs = (after.marks[0]?.started ?? 0) - (before.marks[0]?.started ?? 0)
  return {
    [`${name}Rate`]: rates.reduce((sum, rate) => sum + rate, 0) / rates.length,
    [`${name}First`]: rates.at(0) ?? Number.NaN,
    [`${name}Last`]: rates.at(-1) ?? Number.NaN,
    [`${name}P50`]: waits.p50Ms,
    [`${name}P99`]: waits.p99Ms,
    [`${name}Server`]: (after.serverMicros - before.serverMicros) / jobs,
    [`${name}Client`]: (after.clientMicros - before.clientMicros) / jobs,
    [`${name}Log`]: (after.logBytes - before.logBytes) / jobs,
  } as Figures<LoadFigure<Name>>
}
