/**
 * Nodes and workers: who is alive, who reads which queue, and when a worker's lease runs out. Where the store's own `lease`
 * events are on record the expiry is exact; otherwise it lies between two bounds that the calls give: it was renewed when
 * the heartbeat was sent at the earliest, and when the answer came at the latest.
 */
import type { Job } from './book.ts'
import type { AnswerEvent, HistoryEvent, InvokeEvent, LeaseEvent, NodeEvent } from './history.ts'
import type { Bounds } from './options.ts'

export interface Node {
  readonly name: string
  queues: readonly string[]
  slots: number
  upkeep: boolean
  /** Started, and neither stopped nor killed. */
  up: boolean
  frozen: boolean
  /** Its worker was told to stop. */
  stopping: boolean
  readonly workers: Set<Worker>
}

export interface Worker {
  readonly id: string
  readonly node: Node
  readonly leaseMs: number
  /** When the newest renewal was sent that was answered: what the worker itself may rely on. */
  sentAt: number
  /** The lease lasts at least, and at most, until then. */
  expiresEarliest: number
  expiresLatest: number
  /** From then on rescue may take its leases, whatever the expiry. */
  goneAt: number
  /** Renewals under way. */
  renewing: number
  exact: boolean
  readonly running: Set<Job>
}

/** Of a node that lives; older ones that are over are forgotten then. */
const MOST_INCARNATIONS = 32

export class Fleet {
  readonly nodes = new Map<string, Node>()
  readonly workers = new Map<string, Worker>()
  /** Leases of workers whose registering the recorder tells a moment later: it is another process, and may be slow. */
  readonly #early = new Map<string, LeaseEvent>()
  readonly #bounds: Bounds

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  node(name: string): Node {
    let node = this.nodes.get(name)
    if (node === undefined) {
      node = {
        name,
        queues: [],
        slots: 0,
        upkeep: false,
        up: true,
        frozen: false,
        stopping: false,
        workers: new Set(),
      }
      this.nodes.set(name, node)
    }
    return node
  }

  /** Whether a worker in it should be at work. */
  works(node: Node): boolean {
    return node.up && !node.frozen && !node.stopping && node.queues.length > 0
  }

  apply(event: HistoryEvent, invoked: InvokeEvent | undefined): void {
    switch (event.type) {
      case 'node':
        return this.#noteNode(event)
      case 'stop':
        if (event.what === 'begin') this.node(event.node).stopping = true
        return
      case 'invoke':
        return this.#invoked(event)
      case 'answer':
        if (invoked !== undefined) this.#answered(invoked, event)
        return
      case 'failed':
      case 'unknown':
        if (invoked !== undefined) this.#unanswered(invoked, event.type === 'unknown' ? event.t : null)
        return
      case 'lease':
        return this.#noteLease(event)
      default:
    }
  }

  #noteNode(event: NodeEvent): void {
    const node = this.node(event.node)
    if (event.what === 'started') {
      node.queues = event.queues
      node.slots = event.slots
      node.upkeep = event.upkeep
    }
    node.up = event.what !== 'stopped' && event.what !== 'killed'
    node.frozen = event.what === 'frozen'
    if (event.what === 'started') node.stopping = false
    if (node.up) return
    // Renewals of a node that is gone are never answered; those on their way may still arrive.
    for (const worker of node.workers) {
      if (worker.renewing > 0) this.#renewedAtLatest(worker, event.t + this.#bounds.lateMs)
      worker.renewing = 0
      this.#forgetIfOver(worker)
    }
  }

  #invoked({ t, node, call }: InvokeEvent): void {
    if (call.kind === 'register') {
      if (!this.workers.has(call.worker)) this.#meet(call.worker, this.node(node), call.leaseMs, t)
      const worker = this.workers.get(call.worker)
      if (worker !== undefined) worker.renewing++
    } else if (call.kind === 'heartbeat') {
      const worker = this.workers.get(call.worker)
      if (worker !== undefined) worker.renewing++
    } else if (call.kind === 'retire') {
      const worker = this.workers.get(call.worker)
      if (worker !== undefined) worker.expiresEarliest = 0
    }
  }

  #meet(id: string, node: Node, leaseMs: number, t: number): void {
    if (node.workers.size >= MOST_INCARNATIONS) for (const old of node.workers) this.#forgetIfOver(old, true)
    const worker: Worker = {
      id,
      node,
      leaseMs,
      sentAt: t,
      expiresEarliest: 0,
      expiresLatest: 0,
      goneAt: Infinity,
      renewing: 0,
      exact: false,
      running: new Set(),
    }
    this.workers.set(id, worker)
    node.workers.add(worker)
    const lease = this.#early.get(id)
    if (lease !== undefined) this.#noteLease(lease)
    this.#early.delete(id)
  }

  #answered({ t: sentAt, call }: InvokeEvent, { t, reply }: AnswerEvent): void {
    if (call.kind === 'register' || call.kind === 'heartbeat') {
      const worker = this.workers.get(call.worker)
      if (worker === undefined) return
      worker.renewing = Math.max(0, worker.renewing - 1)
      if (reply.kind === 'heartbeat' && !reply.alive) return
      worker.sentAt = Math.max(worker.sentAt, sentAt)
      if (worker.exact) return
      worker.expiresEarliest = Math.max(worker.expiresEarliest, sentAt + worker.leaseMs)
      this.#renewedAtLatest(worker, t)
    } else if (call.kind === 'retire') {
      const worker = this.workers.get(call.worker)
      if (worker !== undefined) this.#gone(worker, t)
    } else if (reply.kind === 'rescue') {
      for (const id of reply.workers) {
        const worker = this.workers.get(id)
        if (worker !== undefined) this.#gone(worker, t)
      }
    }
  }

  #unanswered({ call }: InvokeEvent, unknownAt: number | null): void {
    if (call.kind !== 'register' && call.kind !== 'heartbeat') return
    const worker = this.workers.get(call.worker)
    if (worker === undefined) return
    worker.renewing = Math.max(0, worker.renewing - 1)
    if (unknownAt !== null) this.#renewedAtLatest(worker, unknownAt + this.#bounds.lateMs)
  }

  #renewedAtLatest(worker: Worker, t: number): void {
    if (!worker.exact) worker.expiresLatest = Math.max(worker.expiresLatest, t + worker.leaseMs)
  }

  #noteLease(event: LeaseEvent): void {
    const { what, worker: id, expiresAt, t } = event
    const worker = this.workers.get(id)
    if (worker === undefined) {
      if (what === 'registered') this.#early.set(id, event)
      return
    }
    worker.exact = true
    if (expiresAt !== null) {
      worker.expiresEarliest = expiresAt
      worker.expiresLatest = expiresAt
    }
    if (what === 'registered') worker.goneAt = Infinity
    if (what === 'retired' || what === 'gone') this.#gone(worker, t)
  }

  #gone(worker: Worker, t: number): void {
    worker.goneAt = Math.min(worker.goneAt, t)
    worker.expiresEarliest = 0
    this.#forgetIfOver(worker)
  }

  claimed(job: Job): void {
    if (job.worker !== null) this.workers.get(job.worker)?.running.add(job)
  }

  left(job: Job): void {
    const worker = job.worker === null ? undefined : this.workers.get(job.worker)
    if (worker === undefined) return
    worker.running.delete(job)
    this.#forgetIfOver(worker)
  }

  /** Incarnations come and go by the thousand; one that is over and holds nothing concerns no rule any more. */
  #forgetIfOver(worker: Worker, crowded = false): void {
    if (worker.running.size > 0 || worker.goneAt === Infinity || (worker.node.up && !crowded)) return
    this.workers.delete(worker.id)
    worker.node.workers.delete(worker)
  }

  /** When rescue may take its leases: at the latest, as far as can be known. */
  orphanedAt(worker: Worker): number {
    if (worker.goneAt !== Infinity) return worker.goneAt
    return worker.renewing > 0 && !worker.exact ? Infinity : worker.expiresLatest
  }
}
