/** How fast jobs get in and out. */
import { drain, fill } from '../drain.ts'
import { SMALL_BYTES } from '../protocol.ts'
import type { Scenario } from './scenario.ts'

export const bulk: Scenario = {
  name: 'bulk',
  peers: true,
  async run(stage) {
    const jobs = stage.sizes.bulk
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
    const jobs = stage.contender === 'holdfast' ? holdfast : peer
    const producer = await stage.child()
    await stage.server.calmDown(stage.url)
    const tookMs = await producer.call('enqueueSingly', { jobs, bytes: SMALL_BYTES, atOnce: 50 })
    return { single: jobs / (tookMs / 1_000) }
  },
}

export const drainOne: Scenario = {
  name: 'drain',
  peers: true,
  async run(stage) {
    const jobs = stage.sizes.drain
    await fill(stage, jobs)
    const { perSecond, serverMicros, clientMicros } = await drain(stage, { jobs })
    return { drain: perSecond, drainServer: serverMicros, drainClient: clientMicros }
  },
}

export const drainTwo: Scenario = {
  name: 'drain2',
  peers: true,
  async run(stage) {
    const jobs = stage.sizes.drain
    await fill(stage, jobs)
    const { perSecond, serverMicros, clientMicros } = await drain(stage, { jobs, processes: 2 })
    return { drain2: perSecond, drain2Server: serverMicros, drain2Client: clientMicros }
  },
}

/** Whether the peers run it depends on the store: only some of them can choose. */
export const history: Scenario = {
  name: 'history',
  peers: false,
  async run(stage) {
    const jobs = stage.sizes.drain
    const config = { history: true }
    await fill(stage, jobs)
    const { perSecond, serverMicros, clientMicros } = await drain(stage, { jobs, config })
    return { history: perSecond, historyServer: serverMicros, historyClient: clientMicros }
  },
}

export const payload8k: Scenario = {
  name: 'payload8k',
  peers: true,
  async run(stage) {
    const jobs = stage.sizes.payload8k
    await fill(stage, jobs, { bytes: 8_192 })
    return { payload8k: (await drain(stage, { jobs })).perSecond }
  },
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
