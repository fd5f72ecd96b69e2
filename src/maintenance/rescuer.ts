/**
 * Rescues the jobs of dead workers. It waits until the store has been reachable for one lease without interruption:
 * after an outage every worker looks dead until it could send a heartbeat again.
 */
import type { Core } from '../core/core.ts'
import type { RescueAnswer } from '../stores/store.ts'
import { AT_ONCE_MS, BATCH, type Duty } from './duty.ts'
import type { Leader } from './leader.ts'

export function rescuer(core: Core, leader: Leader, leaseMs: number): Duty {
  const sweepMs = Math.min(leaseMs / 6, 5_000)
  return {
    name: 'rescue',
    async run() {
      if (leader.seenForMs < leaseMs) return { againInMs: sweepMs }
      const answer = await core.store.upkeep.rescue(BATCH)
      tell(core, answer)
      await dropUnwanted(core, answer)
      return {
        againInMs: answer.jobs.length >= BATCH ? AT_ONCE_MS : sweepMs * (0.8 + core.random.float() * 0.2),
      }
    },
  }
}

/** Deletes dead letters of queues that keep none: the store does not know which those are. */
async function dropUnwanted(core: Core, { jobs }: RescueAnswer): Promise<void> {
  const ids = jobs
    .filter(({ to, queue }) => to === 'dead' && !core.queues.keepsDead(queue))
    .map(({ id }) => id)
  if (ids.length > 0) await core.store.upkeep.discardDead(ids)
}

function tell({ events }: Core, { workers, jobs }: RescueAnswer): void {
  for (const { name, error: _, ...job } of jobs) events.emit('job.rescued', { ...job, job: name })
  const lost = new Set([...workers, ...jobs.map((job) => job.worker)])
  for (const worker of lost) {
    events.emit('worker.lost', { worker, jobs: jobs.filter((job) => job.worker === worker).length })
  }
}
