/** Not a promise of Holdfast: what the rules rely on, so that a mistake of the recorder is not taken for one of the store. */
import type { HistoryEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class WellFormed implements Rule {
  readonly name = 'history'
  readonly sees = [
    'begin',
    'invoke',
    'answer',
    'failed',
    'unknown',
    'move',
    'setting',
    'lease',
    'run',
    'stop',
    'node',
    'store',
    'fault',
    'phase',
    'snapshot',
  ] as const
  readonly #world: World
  #seq = -1
  #t = -Infinity
  #began = false

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.seq <= this.#seq) this.#bad(`seq ${event.seq} comes after ${this.#seq}`, event)
    if (event.t < this.#t) this.#bad(`the clock goes back from ${this.#t} to ${event.t}`, event)
    if (!this.#began && event.type !== 'begin') this.#bad('the first event is not `begin`', event)
    this.#began = true
    this.#seq = event.seq
    this.#t = event.t
    if (event.type === 'invoke' && this.#world.calls.open.has(event.op))
      this.#bad(`op ${event.op} is used twice`, event)
    if (event.type === 'answer') this.#answered(event)
    if (event.type === 'move' && !this.#world.moves)
      this.#bad('there are moves although `begin` says there are none', event)
  }

  #answered(event: Extract<HistoryEvent, { type: 'answer' }>): void {
    const { invoked } = this.#world
    if (invoked === undefined) return this.#bad(`op ${event.op} is answered but not under way`, event)
    const { call } = invoked
    const { reply } = event
    if (call.kind !== reply.kind)
      return this.#bad(`op ${event.op} is a ${call.kind}, its answer a ${reply.kind}`, event)
    const lengths =
      call.kind === 'enqueue' && reply.kind === 'enqueue'
        ? [call.jobs.length, reply.jobs.length]
        : call.kind === 'cycle' && reply.kind === 'cycle'
          ? [call.settles.length, reply.settled.length]
          : [0, 0]
    if (lengths[0] !== lengths[1])
      this.#bad(`op ${event.op} asks for ${lengths[0]}, is answered for ${lengths[1]}`, event)
  }

  #bad(text: string, event: HistoryEvent): void {
    this.#world.report('history', null, text, [event])
  }

  end(): void {}
}
