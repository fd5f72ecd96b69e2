/**
 * S17: a claim does not pass over a job that ranks before what it takes, if that one has been claimable for longer than the
 * bound: in the queue, unpaused, and plain. Suspects have their own way of being claimed and are exempt on both sides.
 *
 * Jobs wait first in the order in which they came; once they are older than the bound, they go to a heap by rank, and a
 * claim only has to look at its top. What is claimed or cancelled meanwhile is crossed out and falls off later.
 */
import { Aging } from '../aging.ts'
import { Heap } from '../heap.ts'
import type { HistoryEvent, MoveEvent, SettingEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

/** Rank and id stand here rather than in the move, because the heap compares them all the time. */
interface Waiting {
  readonly rank: number
  readonly id: string
  readonly move: MoveEvent
  there: boolean
}

interface Line {
  readonly young: Aging<Waiting>
  readonly old: Heap<Waiting>
  paused: boolean
  /** All that waited while the queue was paused is claimable from here. */
  resumedAt: number
}

export function order(world: World): Rule {
  const lines = new Map<string, Line>()
  const waiting = new Map<string, Waiting>()
  const { overtakeMs } = world.bounds

  function on(event: HistoryEvent): void {
    if (event.type === 'move') moved(event)
    else if (event.type === 'setting') set(event)
  }

  function moved(event: MoveEvent): void {
    if (event.from === 'ready') {
      const was = waiting.get(event.job)
      if (was !== undefined) {
        was.there = false
        waiting.delete(event.job)
      }
      if (event.by === 'claim' && event.crashes === 0) claimed(event)
    }
    if (event.to === 'ready' && event.crashes === 0) {
      const entry = { rank: event.rank, id: event.job, move: event, there: true }
      waiting.set(event.job, entry)
      lineOf(event.queue).young.add(event.t, entry)
    }
  }

  function claimed(event: MoveEvent): void {
    const line = lineOf(event.queue)
    // Older by the clock, and by more than a moment: at the bound itself it may still be overtaken.
    line.young.takeBefore(event.t - overtakeMs, (entry) => {
      if (entry.there) line.old.push(entry)
    })
    let first = line.old.top()
    while (first !== undefined && !first.there) {
      line.old.pop()
      first = line.old.top()
    }
    if (
      first === undefined ||
      event.t - line.resumedAt <= overtakeMs ||
      !ranksBefore(first, { rank: event.rank, id: event.job })
    )
      return
    const since = Math.max(first.move.t, line.resumedAt)
    const text = `${event.job} was claimed before it, which ranks after it, when it had been claimable for ${event.t - since} ms`
    world.report('S17', first.move.job, text, [first.move, event])
  }

  function set({ queue, paused, t }: SettingEvent): void {
    const line = lineOf(queue)
    if (line.paused && !paused) line.resumedAt = t
    line.paused = paused
  }

  function lineOf(queue: string): Line {
    let line = lines.get(queue)
    if (line === undefined) {
      line = {
        young: new Aging(),
        old: new Heap<Waiting>(ranksBefore),
        paused: false,
        resumedAt: -Infinity,
      }
      lines.set(queue, line)
    }
    return line
  }

  return { name: 'S17', sees: ['move', 'setting'], on, end() {} }
}

/** Lower ranks go first; equal ones by id. */
function ranksBefore(a: Pick<Waiting, 'rank' | 'id'>, b: Pick<Waiting, 'rank' | 'id'>): boolean {
  return a.rank < b.rank || (a.rank === b.rank && a.id < b.id)
}
