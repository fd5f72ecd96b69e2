/**
 * L3: in the healed part no job waits longer than the bound: ready while a live worker reads its unpaused queue, or due
 * but not promoted while a node does the upkeep. Suspects are exempt: they come one at a time, however many there are.
 */
import type { Job } from '../book.ts'
import type { HistoryEvent, MoveEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

interface Line {
  /** Job → since when it is ready, in that order. */
  readonly ready: Map<string, number>
  paused: boolean
  /** From when on somebody reads it, unpaused; Infinity while nobody does. */
  readableFrom: number
}

export function starvation(world: World): Rule {
  const { book, fleet, bounds } = world
  const lines = new Map<string, Line>()
  let healedAt = Infinity
  let upkeepFrom = Infinity

  /** When readers last came or went: the world knows of it only after us, so it is looked at with the next event. */
  let changedAt: number | null = null

  function on(event: HistoryEvent): void {
    if (changedAt !== null) reread(changedAt)
    switch (event.type) {
      case 'move':
        if (healedAt !== Infinity) moved(event)
        return
      case 'setting':
        lineOf(event.queue).paused = event.paused
        changedAt = event.t
        return
      case 'node':
      case 'stop':
        changedAt = event.t
        return
      case 'phase':
        if (event.phase === 'healed') healed(event.t)
        if (event.phase === 'end') ended()
        return
      default:
    }
  }

  function healed(t: number): void {
    healedAt = t
    reread(t)
    for (const job of book.jobs.values()) {
      if (job.state === 'ready' && !isSuspect(job.lastMove)) lineOf(job.queue).ready.set(job.id, t)
    }
  }

  function moved(event: MoveEvent): void {
    const { job } = world
    if (event.from === 'ready') {
      const line = lineOf(job?.queue ?? event.queue)
      const since = line.ready.get(event.job)
      line.ready.delete(event.job)
      if (since !== undefined) judge(event.job, line, since, event.t, event)
    }
    if (event.from === 'scheduled' && event.by === 'promote' && job !== undefined)
      judgeDue(job, event.t, event)
    if (event.to === 'ready' && !isSuspect(event)) lineOf(event.queue).ready.set(event.job, event.t)
  }

  function judge(job: string, line: Line, since: number, t: number, event: HistoryEvent | null): boolean {
    const waitedMs = t - Math.max(since, line.readableFrom)
    if (waitedMs <= bounds.starveMs) return false
    const text = `it was ready for ${waitedMs} ms while live workers read its queue`
    world.report('L3', job, text, [book.jobs.get(job)?.lastMove ?? null, event])
    return true
  }

  function judgeDue(job: Job, t: number, event: HistoryEvent | null): void {
    const waitedMs = t - Math.max(job.dueAt, healedAt, upkeepFrom)
    if (waitedMs <= bounds.starveMs) return
    world.report('L3', job.id, `it was due for ${waitedMs} ms and not promoted`, [job.lastMove, event])
  }

  /** What has waited too long by now is told; the rest goes on waiting under the new readers. */
  function reread(t: number): void {
    changedAt = null
    const nodes = [...fleet.nodes.values()]
    if (!nodes.some((node) => node.upkeep && node.up && !node.frozen)) upkeepFrom = Infinity
    else if (upkeepFrom === Infinity) upkeepFrom = t
    const read = new Set(nodes.filter((node) => fleet.works(node)).flatMap((node) => node.queues))
    for (const queue of read) lineOf(queue)
    for (const [queue, line] of lines) {
      const readable = !line.paused && read.has(queue)
      if (!readable) judgeOldest(line, t)
      if (!readable) line.readableFrom = Infinity
      else if (line.readableFrom === Infinity) line.readableFrom = t
    }
  }

  function judgeOldest(line: Line, t: number): void {
    for (const [job, since] of line.ready) if (!judge(job, line, since, t, null)) return
  }

  function ended(): void {
    if (changedAt !== null) reread(changedAt)
    if (healedAt === Infinity) return
    for (const line of lines.values()) judgeOldest(line, world.t)
    for (const job of book.jobs.values()) if (job.state === 'scheduled') judgeDue(job, world.t, null)
    healedAt = Infinity
  }

  function lineOf(queue: string): Line {
    let line = lines.get(queue)
    if (line === undefined) {
      line = { ready: new Map(), paused: false, readableFrom: Infinity }
      lines.set(queue, line)
    }
    return line
  }

  return { name: 'L3', sees: ['move', 'setting', 'node', 'stop', 'phase'], on, end: ended }
}

function isSuspect(move: MoveEvent | null): boolean {
  return move !== null && move.crashes > 0
}
