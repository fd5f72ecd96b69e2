/** S6: a final job stays as it is, until it is forgotten; a dead one may also be replayed, by a call that is on record. */
import { isFinal, type Job } from '../book.ts'
import type { AnswerEvent, HistoryEvent, InvokeEvent, MoveEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class FinalIsFinal implements Rule {
  readonly name = 'S6'
  readonly sees = ['move', 'answer'] as const
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'move') this.#moved(event)
    else if (event.type === 'answer' && !this.#world.moves && this.#world.invoked !== undefined)
      this.#claimed(event, this.#world.invoked)
  }

  #moved(event: MoveEvent): void {
    // A second birth is S14's business, a settle without a lease S4's.
    if (event.from === null || event.by === 'settle') return
    const state = this.#world.job?.state ?? this.#world.finished?.state ?? null
    if (state === null) {
      if (this.#world.job === undefined && this.#world.book.forgotten.has(event.job))
        this.#undone(event, 'forgotten')
      return
    }
    if (!isFinal(state)) return
    if (event.to === null) return
    if (event.by !== 'replay' || state !== 'dead') return this.#undone(event, state)
    if (!this.#world.calls.possible('replay')) {
      const text = 'it was replayed, but no replay is on record that could have done so'
      this.#world.report('S6', event.job, text, [this.#world.job?.lastMove ?? null, event])
    }
  }

  #undone(event: MoveEvent, state: string): void {
    const text = `it was ${state}, and ${event.by} took it to ${event.to}`
    this.#world.report('S6', event.job, text, [this.#world.job?.lastMove ?? null, event])
  }

  /** Without moves: a claim that was sent after a client knew that the job is final. */
  #claimed(event: AnswerEvent, invoked: InvokeEvent): void {
    for (const { id, job } of this.#world.leased) {
      const finalSeq = this.#world.book.finished.get(id)?.seq ?? this.#finalSeqOf(job)
      if (finalSeq === 0 || invoked.seq < finalSeq) continue
      this.#world.report('S6', id, 'it was claimed after it had been settled for good', [invoked, event])
    }
  }

  #finalSeqOf(job: Job | undefined): number {
    if (job === undefined || job.finalSeq === 0) return 0
    // It may have been dead for a while before the answer that said so.
    return this.#world.calls.possibleSince('replay', job.seenSeq) ? 0 : job.finalSeq
  }

  end(): void {}
}
