/**
 * S4: only the holder of the current lease writes an outcome, and only a lease that stands is taken away. The answer to a
 * settle tells the truth: `written` once and only if it was, `already` and `lost` never while the lease stands.
 */
import { isFinal } from '../book.ts'
import type { AnswerEvent, HistoryEvent, InvokeEvent, MoveEvent, SettleCall } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class Fence implements Rule {
  readonly name = 'S4'
  readonly sees = ['move', 'answer'] as const
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'move') this.#moved(event)
    else if (event.type === 'answer' && this.#world.invoked !== undefined)
      this.#answered(event, this.#world.invoked)
  }

  #moved(event: MoveEvent): void {
    const { by } = event
    if (by !== 'settle' && by !== 'rescue' && by !== 'release-undelivered') return
    const { job } = this.#world
    const state = job?.state ?? this.#world.finished?.state ?? null
    // Unborn is S2's or S11's business; one that is final, S6's, unless a settle undoes it.
    if (state === null || (isFinal(state) && by !== 'settle')) return
    if (state === 'running' && job?.token === event.token && job.worker === event.worker) return
    const stands =
      state === 'running'
        ? `token ${job?.token} of worker ${job?.worker} is the current one`
        : `it is ${state}`
    const text = `${by} under token ${event.token} of worker ${event.worker}, but ${stands}`
    this.#world.report('S4', event.job, text, [job?.lastMove ?? null, event])
  }

  #answered(event: AnswerEvent, invoked: InvokeEvent): void {
    const { call } = invoked
    const { reply } = event
    if (call.kind !== 'cycle' || reply.kind !== 'cycle') return
    call.settles.forEach((settle, index) => {
      if (reply.settled[index] === 'written') this.#written(settle, invoked, event)
      else if (this.#world.moves) this.#refused(settle, reply.settled[index] ?? 'lost', invoked, event)
    })
  }

  #written({ job: id, token }: SettleCall, invoked: InvokeEvent, event: AnswerEvent): void {
    const job = this.#world.book.jobs.get(id)
    const known = job ?? this.#world.book.finished.get(id)
    if (known === undefined) return
    const evidence = [invoked, event]
    if (known.writtenToken === token) {
      return this.#world.report(
        'S4',
        id,
        `two settles under token ${token} were both answered "written"`,
        evidence,
      )
    }
    if (known.lostTokens !== null && known.lostTokens.includes(token)) {
      const text = `a settle under token ${token} was answered "written", but that lease was taken away`
      return this.#world.report('S4', id, text, evidence)
    }
    if (this.#world.moves && known.settledToken < token) {
      const text = `a settle under token ${token} was answered "written", but the store wrote nothing`
      return this.#world.report('S4', id, text, evidence)
    }
    if (job !== undefined && token <= job.lostToken && invoked.seq > job.lostSeq && !this.#world.moves) {
      this.#world.report(
        'S4',
        id,
        `written under token ${token}, which was known to be over before`,
        evidence,
      )
    }
  }

  #refused({ job: id, token }: SettleCall, reply: string, invoked: InvokeEvent, event: AnswerEvent): void {
    const { call } = invoked
    const job = this.#world.book.jobs.get(id)
    if (job?.state !== 'running' || job.token !== token) return
    if (call.kind === 'cycle' && call.worker !== job.worker) return
    const text = `a settle under token ${token} was answered "${reply}", but its lease stands and nothing was written`
    this.#world.report('S4', id, text, [job.lastMove, invoked, event])
  }

  end(): void {}
}
