/** What people meet first: how long it takes to the first job, and what the store takes of memory and disk. */
import { setTimeout as sleep } from 'node:timers/promises'
import { nowMs } from '../../contest/child/tally.ts'
import type { Child } from '../../contest/children.ts'
import type { SqliteScenario } from './scenario.ts'

const SETTLE_MS = 3_000
const BYTES = 1_024
/** A call enqueues so many: what a program does over its life, not one list of a hundred megabytes. */
const PORTION = 1_000

export const first: SqliteScenario = {
  name: 'first',
  peers: ['plainjob'],
  async run(stage) {
    const jobs = stage.sizes.lifetime
    const fresh = await firstJob(stage)
    const memoryFresh = await settledMegabytes(fresh.child)
    await fresh.child.call('close')
    await fresh.child.dispose()
    const reopened = await firstJob(stage)
    const memoryReopened = await settledMegabytes(reopened.child)
    for (let sent = 0; sent < jobs; sent += PORTION)
      await reopened.child.call('enqueueMany', { jobs: Math.min(PORTION, jobs - sent), bytes: BYTES })
    await stage.started([reopened.child], jobs + 1)
    const memoryAfter = await settledMegabytes(reopened.child)
    return {
      firstFresh: fresh.tookMs,
      firstReopened: reopened.tookMs,
      memoryFresh,
      memoryReopened,
      memoryAfter,
      diskAfter: stage.server.diskBytes(stage.url) / 1e6,
    }
  },
}

/** From before the process is started. */
async function firstJob(
  stage: Parameters<SqliteScenario['run']>[0],
): Promise<{ readonly child: Child; readonly tookMs: number }> {
  await stage.server.calmDown()
  const beganMs = nowMs()
  const child = stage.newChild({ aim: 'latency', history: true })
  return { child, tookMs: (await child.call('runFirstJob')) - beganMs }
}

async function settledMegabytes(child: Child): Promise<number> {
  await sleep(SETTLE_MS)
  return (await child.call('mark')).rssBytes / 1e6
}
