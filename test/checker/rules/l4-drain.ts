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

export function drain(world: World): Rule {
  const { book, fleet, bounds } = world
  const stops = new Map<string, Stop>()
  /** For whom the store is away right now. */
  const away = new Set<string>()
  /** Without moves: workers that have stopped and should hold nothing. */
  const stopped = new Map<string, StopEvent>()

  function on(event: HistoryEvent): void {
    switch (event.type) {
      case 'stop':
        if (event.what === 'end') ended(event)
        else begun(event)
        return
      case 'failed':
      case 'unknown':
        return excuse(event.node)
      case 'store':
        if (event.what === 'down') away.add(event.node ?? EVERYBODY)
        else away.delete(event.node ?? EVERYBODY)
        return excuse(event.node)
      case 'fault':
        return excuse(event.node)
      case 'node':
        return excuse(event.node)
      case 'phase':
        if (event.phase === 'end') over()
        return
      case 'snapshot':
        return left(event)
      default:
    }
  }

  function begun(event: Extract<StopEvent, { what: 'begin' }>): void {
    if (away.has(EVERYBODY) || away.has(event.node)) return
    const deadline = event.t + event.graceMs + bounds.stopSlackMs + bounds.epsilonMs
    const stop = stops.get(event.node)
    if (stop === undefined) stops.set(event.node, { begin: event, deadline })
    else stop.deadline = Math.min(stop.deadline, deadline)
  }

  function ended(event: Extract<StopEvent, { what: 'end' }>): void {
    const stop = stops.get(event.node)
    if (stop === undefined) return
    stops.delete(event.node)
    overdue(event.node, stop)
    const node = fleet.node(event.node)
    for (const worker of node.workers) {
      if (!world.moves) stopped.set(worker.id, event)
      for (const job of worker.running) {
        // A lease whose claim was answered to nobody is rescue's business.
        if (job.seenToken === job.token) leftBehind(job.id, node, [stop.begin, job.lastMove, event])
      }
    }
  }

  function overdue(node: string, { begin, deadline }: Stop): void {
    if (world.t <= deadline) return
    const text = `node ${node} took ${world.t - begin.t} ms to stop, ${world.t - deadline} ms longer than allowed`
    world.report('L4', null, text, [begin])
  }

  function over(): void {
    for (const [node, stop] of stops) overdue(node, stop)
    stops.clear()
  }

  function leftBehind(job: string, node: Node, events: readonly (HistoryEvent | null)[]): void {
    world.report(
      'L4',
      job,
      `it is still running under a lease of node ${node.name}, which has stopped`,
      events,
    )
  }

  function left(event: SnapshotEvent): void {
    for (const { id, state, worker: name, token } of event.jobs) {
      const end = name === null ? undefined : stopped.get(name)
      if (state !== 'running' || end === undefined || book.jobs.get(id)?.seenToken !== token) continue
      leftBehind(id, fleet.node(end.node), [end])
    }
  }

  function excuse(node: string | undefined): void {
    if (node === undefined) stops.clear()
    else stops.delete(node)
  }

  return {
    name: 'L4',
    sees: ['stop', 'failed', 'unknown', 'store', 'fault', 'node', 'phase', 'snapshot'],
    on,
    end: over,
  }
}
