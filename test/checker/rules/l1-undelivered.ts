/**
 * L1, of orphans whose worker lives: where the answer to a claim was lost, the worker's heartbeats keep a lease alive that
 * nobody works on. The worker must find it and give it back. How long that takes is counted from the last thing that
 * disturbed the worker's node or the store.
 */
import type { Job } from '../book.ts'
import type { Worker } from '../fleet.ts'
import type { HistoryEvent, MoveEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class UndeliveredLeases implements Rule {
  readonly name = 'L1'
  readonly sees = ['move', 'store', 'fault', 'node', 'stop', 'phase'] as const
  readonly #world: World
  /** Since when the store was there for all, and each node left alone. */
  #quietSince = 0
  readonly #quietNodeSince = new Map<string, number>()
  #storeUp = true

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    switch (event.type) {
      case 'move':
        return this.#moved(event)
      case 'phase':
        return this.#disturbed(undefined, event.t)
      case 'store':
        this.#disturbed(event.node, event.t)
        if (event.node === undefined) this.#storeUp = event.what === 'up'
        return
      case 'fault':
      case 'node':
      case 'stop':
        return this.#disturbed(event.node, event.t)
      default:
    }
  }

  #moved(event: MoveEvent): void {
    const { job } = this.#world
    if (job?.state !== 'running' || job.worker === null) return
    const worker = this.#world.fleet.workers.get(job.worker)
    if (worker !== undefined) this.#judge(job, worker, event)
  }

  #disturbed(node: string | undefined, t: number): void {
    const { fleet } = this.#world
    if (node === undefined) {
      for (const worker of fleet.workers.values()) this.#judgeAll(worker)
      this.#quietSince = t
    } else {
      for (const worker of fleet.node(node).workers) this.#judgeAll(worker)
      this.#quietNodeSince.set(node, t)
    }
  }

  #judgeAll(worker: Worker): void {
    for (const job of worker.running) this.#judge(job, worker, null)
  }

  #judge(job: Job, worker: Worker, event: HistoryEvent | null): void {
    const { t, fleet, bounds } = this.#world
    const { node } = worker
    if (job.seenToken === job.token || !this.#storeUp || !fleet.works(node) || worker.goneAt !== Infinity)
      return
    const from = Math.max(job.claimedAt, this.#quietSince, this.#quietNodeSince.get(node.name) ?? 0)
    const lateMs = t - from - bounds.undeliveredMs - bounds.epsilonMs
    if (lateMs <= 0) return
    const text = `leased by worker ${worker.id}, which was never told of it, ${lateMs} ms longer than allowed`
    this.#world.report('L1', job.id, text, [job.lastMove, event])
  }

  end(): void {
    this.#disturbed(undefined, this.#world.t)
  }
}
