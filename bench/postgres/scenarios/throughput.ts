import { drain, fill } from '../../contest/drain.ts'
import type { PostgresScenario } from './scenario.ts'

/** As in `history`, the peers' figures are those of the drain. */
export const historyTwo: PostgresScenario = {
  name: 'history2',
  peers: false,
  async run(stage) {
    const jobs = stage.sizes.drain
    await fill(stage, jobs)
    const { perSecond } = await drain(stage, { jobs, processes: 2, config: { history: true } })
    return { history2: perSecond }
  },
}

export const payload1k: PostgresScenario = {
  name: 'payload1k',
  peers: true,
  async run(stage) {
    const jobs = stage.sizes.payload1k
    await fill(stage, jobs, { bytes: 1_024 })
    return { payload1k: (await drain(stage, { jobs })).perSecond }
  },
}
