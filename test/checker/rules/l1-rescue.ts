/**
 * L1: what runs under a lease that is over leaves `running` within one sweep + ε, by rescue or by a late settle.
 *
 * Demanded is only what is promised. A rescuer takes nothing until it has seen the store for one lease without a break, so
 * whatever touches the store as a whole, or a node that does the upkeep, starts that time again. Where such a node goes
 * while others have been watching all along, they only have to take over. Where none is up, nothing is demanded.
 */
import type { Job } from '../book.ts'
import type { Worker } from '../fleet.ts'
import type { FaultEvent, HistoryEvent, NodeEvent, SnapshotEvent, StoreEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export function rescue(world: World): Rule {
  const { book, fleet, bounds } = world
  /** Nobody disturbed the upkeep since. */
  let quietSince = 0
  /** A node that did the upkeep went, but not the last one. */
  let changedAt = -Infinity
  let storeUp = true
  let over = false

  function on(event: HistoryEvent): void {
    switch (event.type) {
      case 'move':
        if (world.job?.state === 'running') judge(world.job, event)
        return
      case 'answer':
      case 'lease':
        return renewed(event)
      case 'phase':
        if (event.phase === 'end') return ended()
        return disturbed(event)
      case 'store':
      case 'fault':
        if (concernsUpkeep(event)) disturbed(event)
        if (event.type === 'store' && event.node === undefined) storeUp = event.what === 'up'
        return
      case 'node':
        return changed(event)
      case 'snapshot':
        if (!world.moves) return judgeSnapshot(event)
        return
      default:
    }
  }

  /** A lease that is renewed after its time: what should have been rescued before, should have been. */
  function renewed(event: Extract<HistoryEvent, { type: 'answer' | 'lease' }>): void {
    const call = event.type === 'answer' ? world.invoked?.call : undefined
    if (event.type === 'answer' && call?.kind !== 'heartbeat') return
    const id = event.type === 'lease' ? event.worker : call?.kind === 'heartbeat' ? call.worker : ''
    const worker = fleet.workers.get(id)
    if (worker !== undefined) judgeWorker(worker)
  }

  function concernsUpkeep(event: StoreEvent | FaultEvent): boolean {
    return event.node === undefined || fleet.node(event.node).upkeep
  }

  function disturbed(event: HistoryEvent): void {
    judgeAll()
    quietSince = event.t
  }

  function changed(event: NodeEvent): void {
    const upkeep = event.what === 'started' ? event.upkeep : fleet.node(event.node).upkeep
    if (!upkeep) return
    judgeAll()
    const leaves = event.what !== 'started' && event.what !== 'thawed'
    if (leaves && watchers(event.node) > 0) changedAt = event.t
    else quietSince = event.t
  }

  function watchers(except: string): number {
    let count = 0
    for (const { name, upkeep, up, frozen } of fleet.nodes.values()) {
      if (upkeep && up && !frozen && name !== except) count++
    }
    return count
  }

  function judgeAll(): void {
    for (const worker of fleet.workers.values()) judgeWorker(worker)
  }

  function judgeWorker(worker: Worker): void {
    if (worker.running.size === 0 || world.t <= fleet.orphanedAt(worker)) return
    for (const job of worker.running) judge(job, null)
  }

  function judge(job: Job, event: HistoryEvent | null): void {
    const { t } = world
    const worker = job.worker === null ? undefined : fleet.workers.get(job.worker)
    if (worker === undefined || t <= fleet.orphanedAt(worker)) return
    const deadline = deadlineOf(worker, job.claimedAt)
    if (t > deadline) late(job.id, worker, t - deadline, [job.lastMove, event])
  }

  function late(job: string, worker: Worker, lateMs: number, events: readonly (HistoryEvent | null)[]): void {
    const text = `worker ${worker.id} was over at ${fleet.orphanedAt(worker)}, but its job stayed running, ${lateMs} ms longer than allowed`
    world.report('L1', job, text, events)
  }

  function deadlineOf(worker: Worker, claimedAt: number): number {
    if (!storeUp || watchers('') === 0) return Infinity
    const watchedFrom = Math.max(quietSince + bounds.leaseMs, changedAt) + bounds.failoverMs
    const from = Math.max(fleet.orphanedAt(worker), claimedAt, watchedFrom)
    return from + bounds.sweepMs + bounds.epsilonMs
  }

  function judgeSnapshot(event: SnapshotEvent): void {
    for (const { id, state, worker: name } of event.jobs) {
      const worker = name === null ? undefined : fleet.workers.get(name)
      if (state !== 'running' || worker === undefined) continue
      const deadline = deadlineOf(worker, book.jobs.get(id)?.seenAt ?? 0)
      if (event.t > deadline) late(id, worker, event.t - deadline, [])
    }
  }

  function ended(): void {
    if (!over) judgeAll()
    over = true
  }

  return {
    name: 'L1',
    sees: ['move', 'answer', 'lease', 'phase', 'store', 'fault', 'node', 'snapshot'],
    on,
    end: ended,
  }
}
