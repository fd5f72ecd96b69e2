/** How fast jobs get in and out. */
import { drain, drainFigures, fill, type DrainOptions } from '../drain.ts'
import type { DrainFigure, Figures } from '../figures.ts'
import { isHoldfast, SMALL_BYTES } from '../protocol.ts'
import type { ContestServer } from '../server.ts'
import type { CommonSizes, HistorySizes } from '../sizes.ts'
import type { Stage } from '../stage.ts'
import type { Scenario } from './scenario.ts'

export const bulk: Scenario = {
  name: 'bulk',
  peers: true,
  async run(stage) {
    const jobs = stage.share(stage.sizes.bulk)
    const producer = await stage.child()
    await stage.server.calmDown(stage.url)
    const tookMs = await producer.call('enqueueMany', { jobs, bytes: SMALL_BYTES })
    return { bulk: jobs / (tookMs / 1_000) }
  },
}

export const single: Scenario = {
  name: 'single',
  peers: true,
  async run(stage) {
    const { holdfast, peer } = stage.sizes.single
    const jobs = isHoldfast(stage.contender) ? holdfast : peer
    const producer = await stage.child()
    await stage.server.calmDown(stage.url)
    const tookMs = await producer.call('enqueueSingly', { jobs, bytes: SMALL_BYTES, atOnce: 50 })
    return { single: jobs / (tookMs / 1_000) }
  },
}

export const drainOne: Scenario = {
  name: 'drain',
  peers: true,
  run: (stage) => filledAndDrained('drain', stage, stage.sizes.drain),
}

export const drainTwo: Scenario = {
  name: 'drain2',
  peers: true,
  run: (stage) => filledAndDrained('drain2', stage, stage.sizes.drain, { processes: 2 }),
}

/** Peers that can choose keep their completed jobs, too. */
export const history: Scenario = {
  name: 'history',
  peers: true,
  run: (stage) => filledAndDrained('history', stage, stage.sizes.drain, { config: { history: true } }),
}

type HistoryScenario<Name extends 'history1k' | 'history8k'> = Scenario<
  DrainFigure<Name>,
  ContestServer,
  CommonSizes & HistorySizes
>

export const history1k: HistoryScenario<'history1k'> = {
  name: 'history1k',
  peers: true,
  run: (stage) =>
    filledAndDrained('history1k', stage, stage.sizes.history1k, { config: { history: true }, bytes: 1_024 }),
}

export const history8k: HistoryScenario<'history8k'> = {
  name: 'history8k',
  peers: true,
  run: (stage) =>
    filledAndDrained('history8k', stage, stage.sizes.history8k, { config: { history: true }, bytes: 8_192 }),
}

export const payload8k: Scenario = {
  name: 'payload8k',
  peers: true,
  run: (stage) => filledAndDrained('payload8k', stage, stage.sizes.payload8k, { bytes: 8_192 }),
}

/** The scenario of most figures: a backlog is enqueued, the server comes to rest, and the backlog is drained. */
export async function filledAndDrained<
  Name extends string,
  Server extends ContestServer,
  Sizes extends CommonSizes,
>(
  name: Name,
  stage: Stage<Server, Sizes>,
  backlog: number,
  { bytes = SMALL_BYTES, ...options }: Omit<DrainOptions, 'jobs'> & { readonly bytes?: number } = {},
): Promise<Figures<DrainFigure<Name>>> {
  const jobs = stage.share(backlog)
  await fill(stage, jobs, { bytes, ...(options.config === undefined ? {} : { config: options.config }) })
  return drainFigures(name, await drain(stage, { jobs, ...options }))
}

/** Both in one run, for their ratio is what counts: handlers that mostly wait must scale with the processes. */
export const waitingHandlers: Scenario = {
  name: 'processes',
  peers: false,
  async run(stage) {
    const { waiting5ms: jobs } = stage.sizes
    const work = { concurrency: 20, handlerMs: 5 }
    await fill(stage, jobs)
    const one = await drain(stage, { jobs, work })
    await fill(stage, 2 * jobs)
    const two = await drain(stage, { jobs: 2 * jobs, work, processes: 2 })
    return { waiting1: one.perSecond, waiting2: two.perSecond }
  },
}
