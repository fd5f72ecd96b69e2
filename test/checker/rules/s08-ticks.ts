/**
 * S8: one job for each tick of a schedule, and the ticks in order, whoever fires them and however often; where the
 * schedule promises to leave none out, none is. What was answered `fired` is in the store.
 */
import type { AnswerEvent, Call, HistoryEvent, InvokeEvent, MoveEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

type Fire = Extract<Call, { readonly kind: 'fire' }>

export class Ticks implements Rule {
  readonly name = 'S8'
  readonly sees = ['invoke', 'move', 'answer'] as const
  readonly #world: World
  /** What each job would be the tick of. */
  readonly #asked = new Map<string, Fire>()
  /** The newest tick of each schedule, and what showed it. */
  readonly #newest = new Map<string, { readonly tick: number; readonly event: HistoryEvent }>()
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

  #born(event: MoveEvent, { schedule, tick, everyMs, job }: Fire): void {
    const newest = this.#newest.get(schedule)
    this.#newest.set(schedule, { tick, event })
    if (newest === undefined) return
    const told = `tick ${tick} of schedule ${schedule}`
    if (tick <= newest.tick)
      this.#world.report('S8', job.id, `${told} was fired when ${newest.tick} had been`, [
        newest.event,
        event,
      ])
    else if (everyMs !== null && tick !== newest.tick + everyMs)
      this.#world.report('S8', job.id, `${told} came next to ${newest.tick}: some were left out`, [
        newest.event,
        event,
      ])
  }

  #answered(event: AnswerEvent, invoked: InvokeEvent, { schedule, tick, job }: Fire): void {
    if (event.reply.kind !== 'fire' || event.reply.outcome !== 'fired') return
    const key = `${schedule} ${tick}`
    if (this.#fired.has(key))
      this.#world.report('S8', job.id, `tick ${tick} of schedule ${schedule} was fired twice`, [
        invoked,
        event,
      ])
    this.#fired.add(key)
    if (this.#world.moves && !this.#world.book.knows(job.id))
      this.#world.report('S8', job.id, 'its tick was answered as fired, and it is not there', [
        invoked,
        event,
      ])
  }

  end(): void {}
}
