/** Deletes finished jobs after their retention time. */
import type { Core } from '../core/core.ts'
import { AT_ONCE_MS, BATCH, type Duty } from './duty.ts'

const EVERY_MS = 30_000

export function pruner(core: Core): Duty {
  return {
    name: 'prune',
    async run() {
      const { pruned } = await core.store.upkeep.prune(core.settings.retention, BATCH)
      return { againInMs: pruned >= BATCH ? AT_ONCE_MS : EVERY_MS }
    },
  }
}
