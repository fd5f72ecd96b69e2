/**
 * S17: a claim does not pass over a job that ranks before what it takes, if that one has been claimable for longer than the
 * bound: in the queue, unpaused, and plain. Suspects have their own way of being claimed and are exempt on both sides.
 * Nor is a job passed over that another claim has locked but not committed: on a busy server the later of two claims may
 * be written down first. So whoever is overtaken is judged when it leaves the queue, by the tokens, which are given in order.
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
  /** The earliest claim that passed over it, and how long it had been claimable then. */
  overtaken: { readonly by: MoveEvent; readonly afterMs: number } | undefined
}

interface Line {
  readonly young: Aging<Waiting>
  readonly old: Heap<Waiting>
  paused: boolean
  /** All that waited while the queue was paused is claimable from here. */
  resumedAt: number
}

export class Order implements Rule {
  readonly name = 'S17'
  readonly sees = ['move', 'setting'] as const
  readonly #world: World
  readonly #lines = new Map<string, Line>()
  readonly #waiting = new Map<string, Waiting>()

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'move') this.#moved(event)
    else if (event.type === 'setting') this.#set(event)
  }

  #moved(event: MoveEvent): void {
    if (event.from === 'ready') {
      const was = this.#waiting.get(event.job)
      if (was !== undefined) {
        was.there = false
        this.#waiting.delete(event.job)
        if (event.by !== 'claim' || !isEarlier(event, was.overtaken?.by)) this.#judge(was)
      }
      if (event.by === 'claim' && event.crashes === 0) this.#claimed(event)
    }
    if (event.to === 'ready' && event.crashes === 0) {
      const entry = { rank: event.rank, id: event.job, move: event, there: true, overtaken: undefined }
      this.#waiting.set(event.job, entry)
      this.#lineOf(event.queue).young.add(event.t, entry)
    }
  }

  #claimed(event: MoveEvent): void {
    const line = this.#lineOf(event.queue)
    // Older by the clock, and by more than a moment: at the bound itself it may still be overtaken.
    line.young.takeBefore(event.t - this.#world.bounds.overtakeMs, (entry) => {
      if (entry.there) line.old.push(entry)
    })
    let first = line.old.top()
    while (first !== undefined && !first.there) {
      line.old.pop()
      first = line.old.top()
    }
    if (
      first === undefined ||
      event.t - line.resumedAt <= this.#world.bounds.overtakeMs ||
      !ranksBefore(first, { rank: event.rank, id: event.job })
    )
      return
    if (first.overtaken !== undefined && !isEarlier(event, first.overtaken.by)) return
    first.overtaken = { by: event, afterMs: event.t - Math.max(first.move.t, line.resumedAt) }
  }

  #judge({ move, overtaken }: Waiting): void {
    if (overtaken === undefined) return
    const { by, afterMs } = overtaken
    const text = `${by.job} was claimed before it, which ranks after it, when it had been claimable for ${afterMs} ms`
    this.#world.report('S17', move.job, text, [move, by])
  }

  #set({ queue, paused, t }: SettingEvent): void {
    const line = this.#lineOf(queue)
    if (line.paused && !paused) line.resumedAt = t
    line.paused = paused
  }

  #lineOf(queue: string): Line {
    let line = this.#lines.get(queue)
    if (line === undefined) {
      line = {
        young: new Aging(),
        old: new Heap<Waiting>(ranksBefore),
        paused: false,
        resumedAt: -Infinity,
      }
      this.#lines.set(queue, line)
    }
    return line
  }

  end(): void {
    for (const entry of this.#waiting.values()) this.#judge(entry)
  }
}

function isEarlier(claim: MoveEvent, than: MoveEvent | undefined): boolean {
  return (claim.token ?? Infinity) < (than?.token ?? Infinity)
}

/** Lower ranks go first; equal ones by id. */
function ranksBefore(a: Pick<Waiting, 'rank' | 'id'>, b: Pick<Waiting, 'rank' | 'id'>): boolean {
  return a.rank < b.rank || (a.rank === b.rank && a.id < b.id)
}
