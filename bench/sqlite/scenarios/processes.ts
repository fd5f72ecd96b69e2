/** Several processes on one store: one of them writes at a time. */
import { drain, fill, type Drained } from '../../contest/drain.ts'
import type { Work } from '../../contest/protocol.ts'
import type { SqliteScenario } from './scenario.ts'

const KEPT = { history: true } as const

type SqliteStage = Parameters<SqliteScenario['run']>[0]

/** In a place of its own: how much is kept in the file shall not differ. */
function byProcesses(stage: SqliteStage, jobs: number, processes: number, work: Work): Promise<Drained> {
  return stage.elsewhere(async (place) => {
    await fill(place, jobs, { config: KEPT })
    return drain(place, { jobs, processes, config: KEPT, work })
  })
}

export const waitingHandlers: SqliteScenario = {
  name: 'processes',
  peers: false,
  async run(stage) {
    const { waiting5ms: jobs } = stage.sizes
    const work = { concurrency: 20, handlerMs: 5 }
    const [one, two, four] = [
      await byProcesses(stage, jobs, 1, work),
      await byProcesses(stage, 2 * jobs, 2, work),
      await byProcesses(stage, 4 * jobs, 4, work),
    ]
    return { waiting1: one.perSecond, waiting2: two.perSecond, waiting4: four.perSecond }
  },
}

export const noop: SqliteScenario = {
  name: 'noop',
  peers: false,
  async run(stage) {
    const { noop: jobs } = stage.sizes
    const one = await byProcesses(stage, jobs, 1, {})
    const four = await byProcesses(stage, jobs, 4, {})
    return { noop1: one.perSecond, noop4: four.perSecond, leastShare: 100 * four.leastShare }
  },
}
