/** Whether much that waits makes a job dearer. */
import { setTimeout as sleep } from 'node:timers/promises'
import { usage } from '../drain.ts'
import { SMALL_BYTES } from '../protocol.ts'
import type { Stage } from '../stage.ts'
import type { Scenario } from './scenario.ts'

const WARM_UP_MS = 2_000

export const waiting: Scenario = {
  name: 'waiting',
  peers: false,
  async run(stage) {
    const { fewWaiting, manyWaiting } = stage.sizes
    const few = await refilled(stage, fewWaiting)
    // What the first one left behind is part of the second one's backlog.
    const many = await refilled(stage, manyWaiting - fewWaiting)
    return { few: few.micros, fewServer: few.serverMicros, many: many.micros, manyServer: many.serverMicros }
  },
}

/** CPU a job, server and client, while the backlog is held at its level: for each thousand done, a thousand more. */
export async function refilled(
  stage: Stage,
  more: number,
): Promise<{ micros: number; serverMicros: number }> {
  const worker = await stage.child()
  await worker.call('enqueueMany', { jobs: more, bytes: SMALL_BYTES })
  await stage.server.calmDown(stage.url)
  await worker.call('startWork', { refill: true })
  await sleep(WARM_UP_MS)
  const before = await usage(stage, [worker])
  await sleep(stage.sizes.windowSeconds * 1_000)
  const after = await usage(stage, [worker])
  await worker.call('stopWork')
  await worker.call('close')
  await worker.dispose()
  const jobs = (after.marks[0]?.started ?? 0) - (before.marks[0]?.started ?? 0)
  const serverMicros = (after.serverMicros - before.serverMicros) / jobs
  return { serverMicros, micros: serverMicros + (after.clientMicros - before.clientMicros) / jobs }
}
