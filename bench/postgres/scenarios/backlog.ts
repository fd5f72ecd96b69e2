import { SMALL_BYTES } from '../../contest/protocol.ts'
import { refilled } from '../../contest/scenarios/backlog.ts'
import type { PostgresScenario } from './scenario.ts'

const ONE_DAY_MS = 86_400_000

export const scheduled: PostgresScenario = {
  name: 'scheduled',
  peers: false,
  async run(stage) {
    const producer = await stage.child()
    await producer.call('enqueueMany', {
      jobs: stage.sizes.scheduled,
      bytes: SMALL_BYTES,
      delayMs: ONE_DAY_MS,
    })
    await producer.dispose()
    return { scheduled: (await refilled(stage, stage.sizes.fewWaiting)).micros }
  },
}
