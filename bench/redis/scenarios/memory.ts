import { drain, fill } from '../../contest/drain.ts'
import type { RedisScenario } from './scenario.ts'

/** What jobs take of the server: memory while they wait, and what is appended to its file for them. */
export const memory: RedisScenario = {
  name: 'memory',
  peers: true,
  async run(stage) {
    const jobs = stage.sizes.memory
    const empty = await stage.server.footprint()
    await fill(stage, jobs)
    const full = await stage.server.footprint()
    await drain(stage, { jobs })
    const drained = await stage.server.footprint()
    return {
      // Bytes a job are megabytes a million.
      memory: (full.memoryBytes - empty.memoryBytes) / jobs,
      enqueueAof: (full.aofBytes - empty.aofBytes) / jobs,
      drainAof: (drained.aofBytes - full.aofBytes) / jobs,
    }
  },
}
