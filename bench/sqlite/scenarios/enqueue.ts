/** What it costs to write jobs: in bulk, one by one, and on a disk that takes its time. */
import type { Stage } from '../../contest/stage.ts'
import { BARE } from '../settings.ts'
import { slowDiskEnvironment } from '../slow-disk.ts'
import type { SqliteScenario } from './scenario.ts'

const BYTES = 1_024

export const bulk1k: SqliteScenario = {
  name: 'bulk1k',
  peers: true,
  async run(stage) {
    const jobs = stage.sizes.bulk
    const producer = await stage.child()
    await stage.server.calmDown()
    const tookMs = await producer.call('enqueueMany', { jobs, bytes: BYTES })
    return { bulk1k: jobs / (tookMs / 1_000) }
  },
}

/** The commit of SQLite alone is measured right beside it: a disk changes its mind within minutes. */
export const oneByOne: SqliteScenario = {
  name: 'one-by-one',
  peers: true,
  async run(stage) {
    const jobs = stage.sizes.oneByOne
    const microsOf = async (stageOf: Stage, contender: string): Promise<number> => {
      const producer = await stageOf.child({ contender })
      // Until the log is reused from its start: while the file grows, each sync writes to the file system's journal, too.
      await producer.call('enqueueSingly', { jobs: Math.ceil(jobs / 2), bytes: BYTES, atOnce: 1 })
      await stage.server.calmDown()
      const tookMs = await producer.call('enqueueSingly', { jobs, bytes: BYTES, atOnce: 1 })
      return (tookMs * 1_000) / jobs
    }
    const own = await microsOf(stage, stage.contender)
    if (stage.contender !== 'holdfast') return { oneByOne: own }
    return { oneByOne: own, bare: await stage.elsewhere((place) => microsOf(place, BARE)) }
  },
}

export const slowDisk: SqliteScenario = {
  name: 'slow-disk',
  peers: false,
  async run(stage) {
    const { slow1, slow50 } = stage.sizes
    const environment = slowDiskEnvironment()
    if (typeof environment === 'string') {
      stage.note(environment)
      return {}
    }
    const producer = await stage.child({}, { env: environment })
    const oneMs = await producer.call('enqueueSingly', { jobs: slow1, bytes: BYTES, atOnce: 1 })
    const manyMs = await producer.call('enqueueSingly', { jobs: slow50, bytes: BYTES, atOnce: 50 })
    return { slow1: slow1 / (oneMs / 1_000), slow50: slow50 / (manyMs / 1_000) }
  },
}
