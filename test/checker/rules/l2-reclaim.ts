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

export function reclaim(world: World): Rule {
  const { fleet, bounds } = world
  const waiting = new Map<string, Waiting>()
  const busy = new Map<string, number>()
  const cutOff = new Set<string>()
  let storeUp = true

  function on(event: HistoryEvent): void {
    switch (event.type) {
      case 'invoke':
      case 'answer': {
        const call = event.type === 'invoke' ? event.call : world.invoked?.call
        if (call?.kind === 'cycle' && call.claim !== null) asked(event.node)
        return
      }
      case 'run':
        return ran(event)
      case 'store':
        if (event.node === undefined) storeUp = event.what === 'up'
        else if (event.what === 'up') cutOff.delete(event.node)
        else cutOff.add(event.node)
        return each(event.node, (node) => restart(node, event))
      case 'fault':
        return each(event.node, (node) => touched(node, event))
      case 'node':
        return nodeChanged(event)
      case 'stop':
        return asked(event.node)
      case 'phase':
        if (event.phase === 'healed') each(undefined, (node) => restart(node, event))
        else ended()
        return
      default:
    }
  }

  /** It has asked, or need not any more; was it in time? */
  function asked(node: string): void {
    const wait = waiting.get(node)
    if (wait === undefined) return
    waiting.delete(node)
    const tookMs = world.t - wait.since
    if (tookMs <= bounds.reclaimMs || isFull(fleet.node(node))) return
    const text = `node ${node} did not ask for jobs for ${tookMs} ms after ${cause(wait)}`
    world.report('L2', null, text, [wait.cause])
  }

  function restart(node: Node, event: HistoryEvent): void {
    asked(node.name)
    if (storeUp && !cutOff.has(node.name) && fleet.works(node)) {
      waiting.set(node.name, { since: event.t, cause: event })
    }
  }

  function touched(node: Node, event: HistoryEvent): void {
    if (waiting.has(node.name)) restart(node, event)
  }

  function nodeChanged(event: NodeEvent): void {
    const node = fleet.node(event.node)
    asked(node.name)
    if (event.what === 'started' || event.what === 'killed' || event.what === 'stopped')
      busy.delete(node.name)
    // It is still frozen by the books: the world takes the event in after us.
    const back = event.what === 'thawed' && node.up && !node.stopping && node.queues.length > 0
    if (back && storeUp && !cutOff.has(node.name)) waiting.set(node.name, { since: event.t, cause: event })
  }

  function ran({ node, what, t }: RunEvent): void {
    const wait = waiting.get(node)
    if (wait !== undefined && isFull(fleet.node(node))) wait.since = t
    busy.set(node, Math.max(0, (busy.get(node) ?? 0) + (what === 'start' ? 1 : -1)))
  }

  function isFull({ name, slots }: Node): boolean {
    return slots > 0 && (busy.get(name) ?? 0) >= slots
  }

  function each(node: string | undefined, visit: (node: Node) => void): void {
    if (node !== undefined) visit(fleet.node(node))
    else for (const one of fleet.nodes.values()) visit(one)
  }

  function ended(): void {
    for (const node of waiting.keys()) asked(node)
  }

  return {
    name: 'L2',
    sees: ['invoke', 'answer', 'run', 'store', 'fault', 'node', 'stop', 'phase'],
    on,
    end: ended,
  }
}

function cause({ cause: event }: Waiting): string {
  if (event.type === 'store') return 'the store was back'
  if (event.type === 'phase') return 'all was healed'
  return `the last thing that disturbed it, ${event.type} at ${event.t}`
}
