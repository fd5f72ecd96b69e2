/**
 * L4: a worker that is told to stop ends within its grace, and then nothing runs under a lease that it knew of. Where the
 * store was away, a call got no answer, or the node was frozen meanwhile, it could not, and nothing is demanded.
 */
import type { Node } from '../fleet.ts'
import type { HistoryEvent, SnapshotEvent, StopEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

/** No node has an empty name. */
const EVERYBODY = ''

interface Stop {
  readonly begin: StopEvent
  deadline: number
}

export class Drain implements Rule {
  readonly name = 'L4'
  readonly sees = ['stop', 'failed', 'unknown', 'store', 'fault', 'node', 'phase', 'snapshot'] as const
  readonly #world: World
  readonly #stops = new Map<string, Stop>()
  /** For whom the store is away right now. */
  readonly #away = new Set<string>()
  /** Without moves: workers that have stopped and should hold nothing. */
  readonly #stopped = new Map<string, StopEvent>()

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    switch (event.type) {
      case 'stop':
        if (event.what === 'end') this.#ended(event)
        else this.#begun(event)
        return
      case 'failed':
      case 'unknown':
        return this.#excuse(event.node)
      case 'store':
        if (event.what === 'down') this.#away.add(event.node ?? EVERYBODY)
        else this.#away.delete(event.node ?? EVERYBODY)
        return this.#excuse(event.node)
      case 'fault':
        return this.#excuse(event.node)
      case 'node':
        return this.#excuse(event.node)
      case 'phase':
        if (event.phase === 'end') this.#over()
        return
      case 'snapshot':
        return this.#left(event)
      default:
    }
  }

  #begun(event: Extract<StopEvent, { what: 'begin' }>): void {
    if (this.#away.has(EVERYBODY) || this.#away.has(event.node)) return
    const deadline = event.t + event.graceMs + this.#world.bounds.stopSlackMs + this.#world.bounds.epsilonMs
    const stop = this.#stops.get(event.node)
    if (stop === undefined) this.#stops.set(event.node, { begin: event, deadline })
    else stop.deadline = Math.min(stop.deadline, deadline)
  }

  #ended(event: Extract<StopEvent, { what: 'end' }>): void {
    const stop = this.#stops.get(event.node)
    if (stop === undefined) return
    this.#stops.delete(event.node)
    this.#overdue(event.node, stop)
    const node = this.#world.fleet.node(event.node)
    for (const worker of node.workers) {
      if (!this.#world.moves) this.#stopped.set(worker.id, event)
      for (const job of worker.running) {
        // A lease whose claim was answered to nobody is rescue's business.
        if (job.seenToken === job.token) this.#leftBehind(job.id, node, [stop.begin, job.lastMove, event])
      }
    }
  }

  #overdue(node: string, { begin, deadline }: Stop): void {
    if (this.#world.t <= deadline) return
    const text = `node ${node} took ${this.#world.t - begin.t} ms to stop, ${this.#world.t - deadline} ms longer than allowed`
    this.#world.report('L4', null, text, [begin])
  }

  #over(): void {
    for (const [node, stop] of this.#stops) this.#overdue(node, stop)
    this.#stops.clear()
  }

  #leftBehind(job: string, node: Node, events: readonly (HistoryEvent | null)[]): void {
    this.#world.report(
      'L4',
      job,
      `it is still running under a lease of node ${node.name}, which has stopped`,
      events,
    )
  }

  #left(event: SnapshotEvent): void {
    for (const { id, state, worker: name, token } of event.jobs) {
      const end = name === null ? undefined : this.#stopped.get(name)
      if (state !== 'running' || end === undefined || this.#world.book.jobs.get(id)?.seenToken !== token)
        continue
      this.#leftBehind(id, this.#world.fleet.node(end.node), [end])
    }
  }

  #excuse(node: string | undefined): void {
    if (node === undefined) this.#stops.clear()
    else this.#stops.delete(node)
  }

  end(): void {
    this.#over()
  }
}
