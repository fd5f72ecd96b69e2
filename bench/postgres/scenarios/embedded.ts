/** The store inside the process: against the server, and what it takes of memory. */
import { setTimeout as sleep } from 'node:timers/promises'
import { drain, fill, rateOf } from '../../contest/drain.ts'
import { SMALL_BYTES } from '../../contest/protocol.ts'
import type { PostgresScenario, PostgresStage } from './scenario.ts'

const SETTLE_MS = 3_000

export const embedded: PostgresScenario = {
  name: 'embedded',
  peers: false,
  async run(stage) {
    const jobs = stage.sizes.embedded
    // Nobody else can open the directory: one process does it all.
    const child = await stage.child({ url: `file:${stage.folder()}`, history: true })
    await child.call('enqueueMany', { jobs, bytes: SMALL_BYTES })
    await child.call('startWork', {})
    await stage.started([child], jobs)
    const result = await child.call('stopWork')
    await child.dispose()
    await fill(stage, jobs)
    const server = await drain(stage, { jobs, config: { history: true } })
    return { embedded: rateOf([result], jobs), embeddedServer: server.perSecond }
  },
}

export const embeddedMemory: PostgresScenario = {
  name: 'embedded-memory',
  peers: false,
  maxRounds: 3,
  async run(stage) {
    const url = `file:${stage.folder()}`
    return { embeddedFirstRss: await megabytesAt(stage, url), embeddedRss: await megabytesAt(stage, url) }
  },
}

/** Of a worker that has run some jobs and has nothing more to do. */
async function megabytesAt(stage: PostgresStage, url: string): Promise<number> {
  const child = await stage.child({ url, history: true })
  await child.call('enqueueMany', { jobs: 100, bytes: SMALL_BYTES })
  await child.call('startWork', {})
  await stage.started([child], 100)
  await sleep(SETTLE_MS)
  const { rssBytes } = await child.call('mark')
  await child.call('stopWork')
  await child.call('close')
  await child.dispose()
  return rssBytes / 1e6
}
