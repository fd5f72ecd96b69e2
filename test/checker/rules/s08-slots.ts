/**
 * S8: one job for each slot of a schedule, and the slots in order, whoever fires them and however often; where the
 * schedule promises to leave none out, none is. What was answered `fired` is in the store.
 */
import type { AnswerEvent, Call, HistoryEvent, InvokeEvent, MoveEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

type Fire = Extract<Call, { readonly kind: 'fire' }>

export class Slots implements Rule {
  readonly name = 'S8'
  readonly sees = ['invoke', 'move', 'answer'] as const
  readonly #world: World
  /** What each job would be the slot of. */
  readonly #asked = new Map<string, Fire>()
  /** The newest slot of each schedule, and what showed it. */
  readonly #newest = new Map<string, { readonly slot: number; readonly event: HistoryEvent }>()
  readonly #fired = new Set<string>()

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'invoke') {
      if (event.call.kind === 'fire') this.#asked.set(event.call.job.id, event.call)
    } else if (event.type === 'move') {
      const fire = event.from === null ? this.#asked.get(event.job) : undefined
      if (fire !== undefined) this.#born(event, fire)
    } else if (event.type === 'answer') {
      const { invoked } = this.#world
      if (invoked?.call.kind === 'fire') this.#answered(event, invoked, invoked.call)
    }
  }

  #born(event: MoveEvent, { schedule, slot, everyMs, job }: Fire): void {
    const newest = this.#newest.get(schedule)
    this.#newest.set(schedule, { slot, event })
    if (newest === undefined) return
    const told = `slot ${slot} of schedule ${schedule}`
    if (slot <= newest.slot)
      this.#world.report('S8', job.id, `${told} was fired when ${newest.slot} had been`, [
        newest.event,
        event,
      ])
    else if (everyMs !== null && slot !== newest.slot + everyMs)
      this.#world.report('S8', job.id, `${told} came next to ${newest.slot}: some were left out`, [
        newest.event,
        event,
      ])
  }

  #answered(event: AnswerEvent, invoked: InvokeEvent, { schedule, slot, job }: Fire): void {
    if (event.reply.kind !== 'fire' || event.reply.outcome !== 'fired') return
    const key = `${schedule} ${slot}`
    if (this.#fired.has(key))
      this.#world.report('S8', job.id, `slot ${slot} of schedule ${schedule} was fired twice`, [
        invoked,
        event,
      ])
    this.#fired.add(key)
    if (this.#world.moves && !this.#world.book.knows(job.id))
      this.#world.report('S8', job.id, 'its slot was answered as fired, and it is not there', [
        invoked,
        event,
      ])
  }

  end(): void {}
}
