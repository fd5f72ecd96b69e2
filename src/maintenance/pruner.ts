/** Forgets finished jobs when their time is over. */
import type { Core } from '../core/core.ts'
import { AT_ONCE_MS, BATCH, DUTY_TIMEOUT_MS, type Duty } from './duty.ts'

const EVERY_MS = 30_000

export function pruner(core: Core): Duty {
  return {
    name: 'prune',
    async run() {
      const { pruned } = await core.connection.call(
        'prune finished jobs',
        (store) => store.upkeep.prune(core.settings.retention, BATCH),
        DUTY_TIMEOUT_MS,
      )
      return { againInMs: pruned >= BATCH ? AT_ONCE_MS : EVERY_MS }
    },
  }
}
