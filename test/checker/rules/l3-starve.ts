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

export class Starvation implements Rule {
  readonly name = 'L3'
  readonly sees = ['move', 'setting', 'node', 'stop', 'phase'] as const
  readonly #world: World
  readonly #lines = new Map<string, Line>()
  #healedAt = Infinity
  #upkeepFrom = Infinity

  /** When readers last came or went: the world knows of it only after us, so it is looked at with the next event. */
  #changedAt: number | null = null

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (this.#changedAt !== null) this.#reread(this.#changedAt)
    switch (event.type) {
      case 'move':
        if (this.#healedAt !== Infinity) this.#moved(event)
        return
      case 'setting':
        this.#lineOf(event.queue).paused = event.paused
        this.#changedAt = event.t
        return
      case 'node':
      case 'stop':
        this.#changedAt = event.t
        return
      case 'phase':
        if (event.phase === 'healed') this.#healed(event.t)
        if (event.phase === 'end') this.#ended()
        return
      default:
    }
  }

  #healed(t: number): void {
    this.#healedAt = t
    this.#reread(t)
    for (const job of this.#world.book.jobs.values()) {
      if (job.state === 'ready' && !isSuspect(job.lastMove)) this.#lineOf(job.queue).ready.set(job.id, t)
    }
  }

  #moved(event: MoveEvent): void {
    const { job } = this.#world
    if (event.from === 'ready') {
      const line = this.#lineOf(job?.queue ?? event.queue)
      const since = line.ready.get(event.job)
      line.ready.delete(event.job)
      if (since !== undefined) this.#judge(event.job, line, since, event.t, event)
    }
    if (event.from === 'scheduled' && event.by === 'promote' && job !== undefined)
      this.#judgeDue(job, event.t, event)
    if (event.to === 'ready' && !isSuspect(event)) this.#lineOf(event.queue).ready.set(event.job, event.t)
  }

  #judge(job: string, line: Line, since: number, t: number, event: HistoryEvent | null): boolean {
    const waitedMs = t - Math.max(since, line.readableFrom)
    if (waitedMs <= this.#world.bounds.starveMs) return false
    const text = `it was ready for ${waitedMs} ms while live workers read its queue`
    this.#world.report('L3', job, text, [this.#world.book.jobs.get(job)?.lastMove ?? null, event])
    return true
  }

  #judgeDue(job: Job, t: number, event: HistoryEvent | null): void {
    const waitedMs = t - Math.max(job.dueAt, this.#healedAt, this.#upkeepFrom)
    if (waitedMs <= this.#world.bounds.starveMs) return
    this.#world.report('L3', job.id, `it was due for ${waitedMs} ms and not promoted`, [job.lastMove, event])
  }

  /** What has waited too long by now is told; the rest goes on waiting under the new readers. */
  #reread(t: number): void {
    this.#changedAt = null
    const nodes = [...this.#world.fleet.nodes.values()]
    if (!nodes.some((node) => node.upkeep && node.up && !node.frozen)) this.#upkeepFrom = Infinity
    else if (this.#upkeepFrom === Infinity) this.#upkeepFrom = t
    const read = new Set(nodes.filter((node) => this.#world.fleet.works(node)).flatMap((node) => node.queues))
    for (const queue of read) this.#lineOf(queue)
    for (const [queue, line] of this.#lines) {
      const readable = !line.paused && read.has(queue)
      if (!readable) this.#judgeOldest(line, t)
      if (!readable) line.readableFrom = Infinity
      else if (line.readableFrom === Infinity) line.readableFrom = t
    }
  }

  #judgeOldest(line: Line, t: number): void {
    for (const [job, since] of line.ready) if (!this.#judge(job, line, since, t, null)) return
  }

  #ended(): void {
    if (this.#changedAt !== null) this.#reread(this.#changedAt)
    if (this.#healedAt === Infinity) return
    for (const line of this.#lines.values()) this.#judgeOldest(line, this.#world.t)
    for (const job of this.#world.book.jobs.values())
      if (job.state === 'scheduled') this.#judgeDue(job, this.#world.t, null)
    this.#healedAt = Infinity
  }

  #lineOf(queue: string): Line {
    let line = this.#lines.get(queue)
    if (line === undefined) {
      line = { ready: new Map(), paused: false, readableFrom: Infinity }
      this.#lines.set(queue, line)
    }
    return line
  }

  end(): void {
    this.#ended()
  }
}

function isSuspect(move: MoveEvent | null): boolean {
  return move !== null && move.crashes > 0
}
