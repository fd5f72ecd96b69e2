/**
 * L1: what runs under a lease that is over leaves `running` within one sweep + ε, by rescue or by a late settle.
 *
 * Demanded is only what is promised. A rescuer takes nothing until it has seen the store for one lease without a break, so
 * whatever touches the store as a whole, or a node that does the upkeep, starts that time again. Where such a node goes
 * while others have been watching all along, they only have to take over. Where none is up, or none of them reaches the
 * store, nothing is demanded.
 */
import type { Job } from '../book.ts'
import type { Worker } from '../fleet.ts'
import type { FaultEvent, HistoryEvent, NodeEvent, SnapshotEvent, StoreEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class Rescue implements Rule {
  readonly name = 'L1'
  readonly sees = ['move', 'answer', 'lease', 'phase', 'store', 'fault', 'node', 'snapshot'] as const
  readonly #world: World
  /** Nobody disturbed the upkeep since. */
  #quietSince = 0
  /** A node that did the upkeep went, but not the last one. */
  #changedAt = -Infinity
  #storeUp = true
  /** Nodes that cannot reach the store. */
  readonly #cutOff = new Set<string>()
  #over = false

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    switch (event.type) {
      case 'move':
        if (this.#world.job?.state === 'running') this.#judge(this.#world.job, event)
        return
      case 'answer':
      case 'lease':
        return this.#renewed(event)
      case 'phase':
        if (event.phase === 'end') return this.#ended()
        return this.#disturbed(event)
      case 'store':
      case 'fault':
        if (this.#concernsUpkeep(event)) this.#disturbed(event)
        if (event.type === 'store') this.#noteReach(event)
        return
      case 'node':
        return this.#changed(event)
      case 'snapshot':
        if (!this.#world.moves) return this.#judgeSnapshot(event)
        return
      default:
    }
  }

  /** A lease that is renewed after its time: what should have been rescued before, should have been. */
  #renewed(event: Extract<HistoryEvent, { type: 'answer' | 'lease' }>): void {
    const call = event.type === 'answer' ? this.#world.invoked?.call : undefined
    if (event.type === 'answer' && call?.kind !== 'heartbeat') return
    const id = event.type === 'lease' ? event.worker : call?.kind === 'heartbeat' ? call.worker : ''
    const worker = this.#world.fleet.workers.get(id)
    if (worker !== undefined) this.#judgeWorker(worker)
  }

  #concernsUpkeep(event: StoreEvent | FaultEvent): boolean {
    return event.node === undefined || this.#world.fleet.node(event.node).upkeep
  }

  #noteReach({ what, node }: StoreEvent): void {
    if (node === undefined) this.#storeUp = what === 'up'
    else if (what === 'up') this.#cutOff.delete(node)
    else this.#cutOff.add(node)
  }

  #disturbed(event: HistoryEvent): void {
    this.#judgeAll()
    this.#quietSince = event.t
  }

  #changed(event: NodeEvent): void {
    const upkeep = event.what === 'started' ? event.upkeep : this.#world.fleet.node(event.node).upkeep
    if (!upkeep) return
    this.#judgeAll()
    const leaves = event.what !== 'started' && event.what !== 'thawed'
    if (leaves && this.#watchers(event.node) > 0) this.#changedAt = event.t
    else this.#quietSince = event.t
  }

  #watchers(except: string): number {
    let count = 0
    for (const { name, upkeep, up, frozen } of this.#world.fleet.nodes.values()) {
      if (upkeep && up && !frozen && !this.#cutOff.has(name) && name !== except) count++
    }
    return count
  }

  #judgeAll(): void {
    for (const worker of this.#world.fleet.workers.values()) this.#judgeWorker(worker)
  }

  #judgeWorker(worker: Worker): void {
    if (worker.running.size === 0 || this.#world.t <= this.#world.fleet.orphanedAt(worker)) return
    for (const job of worker.running) this.#judge(job, null)
  }

  #judge(job: Job, event: HistoryEvent | null): void {
    const { t } = this.#world
    const worker = job.worker === null ? undefined : this.#world.fleet.workers.get(job.worker)
    if (worker === undefined || t <= this.#world.fleet.orphanedAt(worker)) return
    const deadline = this.#deadlineOf(worker, job.claimedAt)
    if (t > deadline) this.#late(job.id, worker, t - deadline, [job.lastMove, event])
  }

  #late(job: string, worker: Worker, lateMs: number, events: readonly (HistoryEvent | null)[]): void {
    const text = `worker ${worker.id} was over at ${this.#world.fleet.orphanedAt(worker)}, but its job stayed running, ${lateMs} ms longer than allowed`
    this.#world.report('L1', job, text, events)
  }

  #deadlineOf(worker: Worker, claimedAt: number): number {
    if (!this.#storeUp || this.#watchers('') === 0) return Infinity
    const watchedFrom =
      Math.max(this.#quietSince + this.#world.bounds.leaseMs, this.#changedAt) + this.#world.bounds.failoverMs
    const from = Math.max(this.#world.fleet.orphanedAt(worker), claimedAt, watchedFrom)
    return from + this.#world.bounds.sweepMs + this.#world.bounds.epsilonMs
  }

  #judgeSnapshot(event: SnapshotEvent): void {
    for (const { id, state, worker: name } of event.jobs) {
      const worker = name === null ? undefined : this.#world.fleet.workers.get(name)
      if (state !== 'running' || worker === undefined) continue
      const deadline = this.#deadlineOf(worker, this.#world.book.jobs.get(id)?.seenAt ?? 0)
      if (event.t > deadline) this.#late(id, worker, event.t - deadline, [])
    }
  }

  #ended(): void {
    if (!this.#over) this.#judgeAll()
    this.#over = true
  }

  end(): void {
    this.#ended()
  }
}
