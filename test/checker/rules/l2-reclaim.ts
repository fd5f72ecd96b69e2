/**
 * L2: after an outage every live worker asks for jobs again within the bound. The time starts again when a fault touches
 * the worker, and while all its slots are taken: a worker that has no room does not ask.
 */
import type { HistoryEvent, NodeEvent, RunEvent } from '../history.ts'
import type { Node } from '../fleet.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

interface Waiting {
  since: number
  readonly cause: HistoryEvent
}

export class Reclaim implements Rule {
  readonly name = 'L2'
  readonly sees = ['invoke', 'answer', 'run', 'store', 'fault', 'node', 'stop', 'phase'] as const
  readonly #world: World
  readonly #waiting = new Map<string, Waiting>()
  readonly #busy = new Map<string, number>()
  readonly #cutOff = new Set<string>()
  #storeUp = true

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    switch (event.type) {
      case 'invoke':
      case 'answer': {
        const call = event.type === 'invoke' ? event.call : this.#world.invoked?.call
        if (call?.kind === 'cycle' && call.claim !== null) this.#asked(event.node)
        return
      }
      case 'run':
        return this.#ran(event)
      case 'store':
        if (event.node === undefined) this.#storeUp = event.what === 'up'
        else if (event.what === 'up') this.#cutOff.delete(event.node)
        else this.#cutOff.add(event.node)
        return this.#each(event.node, (node) => this.#restart(node, event))
      case 'fault':
        return this.#each(event.node, (node) => this.#touched(node, event))
      case 'node':
        return this.#nodeChanged(event)
      case 'stop':
        return this.#asked(event.node)
      case 'phase':
        if (event.phase === 'healed') this.#each(undefined, (node) => this.#restart(node, event))
        else this.#ended()
        return
      default:
    }
  }

  /** It has asked, or need not any more; was it in time? */
  #asked(node: string): void {
    const wait = this.#waiting.get(node)
    if (wait === undefined) return
    this.#waiting.delete(node)
    const tookMs = this.#world.t - wait.since
    if (tookMs <= this.#world.bounds.reclaimMs || this.#isFull(this.#world.fleet.node(node))) return
    const text = `node ${node} did not ask for jobs for ${tookMs} ms after ${cause(wait)}`
    this.#world.report('L2', null, text, [wait.cause])
  }

  #restart(node: Node, event: HistoryEvent): void {
    this.#asked(node.name)
    if (this.#storeUp && !this.#cutOff.has(node.name) && this.#world.fleet.works(node)) {
      this.#waiting.set(node.name, { since: event.t, cause: event })
    }
  }

  #touched(node: Node, event: HistoryEvent): void {
    if (this.#waiting.has(node.name)) this.#restart(node, event)
  }

  #nodeChanged(event: NodeEvent): void {
    const node = this.#world.fleet.node(event.node)
    this.#asked(node.name)
    if (event.what === 'started' || event.what === 'killed' || event.what === 'stopped')
      this.#busy.delete(node.name)
    // It is still frozen by the books: the world takes the event in after us.
    const back = event.what === 'thawed' && node.up && !node.stopping && node.queues.length > 0
    if (back && this.#storeUp && !this.#cutOff.has(node.name))
      this.#waiting.set(node.name, { since: event.t, cause: event })
  }

  #ran({ node, what, t }: RunEvent): void {
    const wait = this.#waiting.get(node)
    if (wait !== undefined && this.#isFull(this.#world.fleet.node(node))) wait.since = t
    this.#busy.set(node, Math.max(0, (this.#busy.get(node) ?? 0) + (what === 'start' ? 1 : -1)))
  }

  #isFull({ name, slots }: Node): boolean {
    return slots > 0 && (this.#busy.get(name) ?? 0) >= slots
  }

  #each(node: string | undefined, visit: (node: Node) => void): void {
    if (node !== undefined) visit(this.#world.fleet.node(node))
    else for (const one of this.#world.fleet.nodes.values()) visit(one)
  }

  #ended(): void {
    for (const node of this.#waiting.keys()) this.#asked(node)
  }

  end(): void {
    this.#ended()
  }
}

function cause({ cause: event }: Waiting): string {
  if (event.type === 'store') return 'the store was back'
  if (event.type === 'phase') return 'all was healed'
  return `the last thing that disturbed it, ${event.type} at ${event.t}`
}
