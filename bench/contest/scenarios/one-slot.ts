import { drain, fill } from '../drain.ts'
import type { ContestServer } from '../server.ts'
import type { CommonSizes, OneSlotSizes } from '../sizes.ts'
import type { Scenario } from './scenario.ts'

/** One job at a time: how long the way to the store and back takes, and how many ways a job needs. */
export const oneSlot: Scenario<'slot1', ContestServer, CommonSizes & OneSlotSizes> = {
  name: 'slot1',
  peers: true,
  async run(stage) {
    const jobs = stage.sizes.slot1
    await fill(stage, jobs)
    return { slot1: (await drain(stage, { jobs, work: { concurrency: 1 } })).perSecond }
  },
}
