import { drain, fill } from '../../contest/drain.ts'
import type { RedisScenario } from './scenario.ts'

/** One job at a time: how long the way to the server and back takes, and how many ways a job needs. */
export const oneSlot: RedisScenario = {
  name: 'slot1',
  peers: true,
  async run(stage) {
    const jobs = stage.sizes.slot1
    await fill(stage, jobs)
    return { slot1: (await drain(stage, { jobs, work: { concurrency: 1 } })).perSecond }
  },
}
