/** S15: what a store counts is what is there. Whether that is what its moves left, S1, S2 and S11 say. */
import type { HistoryEvent, SnapshotEvent, State } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

type Counts = Record<State, number>

export class Counters implements Rule {
  readonly name = 'S15'
  readonly sees = ['snapshot'] as const
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'snapshot' && event.counters !== null) this.#compare(event, event.counters)
  }

  #compare(event: SnapshotEvent, counters: NonNullable<SnapshotEvent['counters']>): void {
    const recount = new Map<string, Counts>()
    for (const { queue, state } of event.jobs) {
      const counts = recount.get(queue) ?? noCounts()
      counts[state]++
      recount.set(queue, counts)
    }
    const queues = new Set([...recount.keys(), ...Object.keys(counters)])
    for (const queue of queues) {
      const counts = recount.get(queue) ?? noCounts()
      for (const state of Object.keys(counts) as State[]) {
        const counter = counters[queue]?.[state] ?? 0
        if (counter === counts[state]) continue
        const text = `queue ${queue}: the store counts ${counter} ${state}, a recount finds ${counts[state]}`
        this.#world.report('S15', null, text, [])
      }
    }
  }

  end(): void {}
}

function noCounts(): Counts {
  return { scheduled: 0, blocked: 0, ready: 0, running: 0, completed: 0, dead: 0, cancelled: 0 }
}
