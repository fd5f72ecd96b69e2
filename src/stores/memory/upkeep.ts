/** Maintenance in memory: promote, rescue, prune, lead. */
import { mayHaveRun } from '../../job/crash.ts'
import type { WorkerId } from '../../job/ids.ts'
import type { FinalState } from '../../job/states.ts'
import type { RescueAnswer, RescuedJob, Retention, Upkeep } from '../store.ts'
import type { Entry, LeaseEntry } from './entry.ts'
import type { MemoryState } from './state.ts'

interface Leadership {
  leader: { readonly id: WorkerId; readonly untilMs: number } | null
}

/** Rejects if the store is closed. */
export type Guard = <T>(step: () => T) => Promise<T>

export function memoryUpkeep(state: MemoryState, step: Guard): Upkeep {
  const leadership: Leadership = { leader: null }
  return {
    promote: (limit) => step(() => promote(state, limit)),
    rescue: (limit) => step(() => rescue(state, limit)),
    prune: (retention, limit) => step(() => ({ pruned: prune(state, retention, limit) })),
    lead: (candidate, ttlMs) =>
      step(() => {
        const now = state.now()
        const { leader } = leadership
        if (leader !== null && leader.id !== candidate && leader.untilMs > now) return false
        leadership.leader = { id: candidate, untilMs: now + ttlMs }
        return ttlMs > 0
      }),
  }
}

function promote(state: MemoryState, limit: number): { promoted: number; nextInMs: number | null } {
  const now = state.now()
  const queues = new Set<string>()
  let promoted = 0
  let next = state.shelves.scheduled.first()
  while (next !== undefined && next.dueAt <= now && promoted < limit) {
    state.shelves.take(next)
    state.shelves.put(next, 'ready')
    queues.add(next.job.queue)
    promoted++
    next = state.shelves.scheduled.first()
  }
  for (const queue of queues) state.hint({ type: 'ready', queue })
  return { promoted, nextInMs: next === undefined ? null : Math.max(0, next.dueAt - now) }
}

function rescue(state: MemoryState, limit: number): RescueAnswer {
  const now = state.now()
  const jobs: RescuedJob[] = []
  for (const lease of state.leases.orphaned(now)) {
    if (jobs.length >= limit) break
    const worker = state.leases.workers.get(lease.worker)
    const atOnce = worker?.atOnce ?? null
    const open = state.leases.revoke(lease)
    for (const [before, entry] of open.entries())
      jobs.push(crashed(state, entry, lease, mayHaveRun(before, atOnce)))
    // The jobs of its next lease, which a later call may take, come after these.
    if (worker !== undefined && atOnce !== null) worker.atOnce = Math.max(0, atOnce - open.length)
  }
  // Keep a worker until none of its leases is left, so that a bounded rescue never leaves one behind.
  const workers = [...state.leases.workers]
    .filter(([id, worker]) => worker.expiresAt <= now && state.leases.of(id).length === 0)
    .map(([id]) => id)
  for (const id of workers) state.leases.workers.delete(id)
  return { workers, jobs }
}

function crashed(state: MemoryState, entry: Entry, lease: LeaseEntry, ran: boolean): RescuedJob {
  const { to, error } = state.crashed(entry, lease, ran)
  const { worker } = lease
  const { id, name, queue } = entry.job
  return { id, name, queue, worker, crashes: entry.crashes, to, error }
}

function prune(state: MemoryState, retention: Retention, limit: number): number {
  const now = state.now()
  state.keys.prune(now)
  const rules: readonly (readonly [FinalState, number, number | null])[] = [
    ['completed', retention.completedMs, retention.maxCompleted],
    ['dead', retention.deadMs, retention.maxDead],
    ['cancelled', retention.cancelledMs, retention.maxCancelled],
  ]
  let pruned = 0
  for (const [final, keepMs, keepCount] of rules) {
    const shelf = state.shelves.finished[final]
    while (pruned < limit) {
      const oldest = shelf.first()
      if (oldest === undefined) break
      const tooOld = (oldest.end?.at ?? now) + keepMs <= now
      const tooMany = keepCount !== null && shelf.size > keepCount
      if (!tooOld && !tooMany) break
      state.shelves.forgetOldest(final)
      pruned++
    }
  }
  return pruned
}
