/** S1: an acked enqueue is in the store, live or final, until a prune or a discard is on record. */
import { isFinal } from '../book.ts'
import type { AnswerEvent, HistoryEvent, MoveEvent, SnapshotEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class NothingLost implements Rule {
  readonly name = 'S1'
  readonly sees = ['answer', 'move', 'snapshot'] as const
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'answer') this.#acked(event)
    else if (event.type === 'move') this.#moved(event)
    else if (event.type === 'snapshot') {
      if (this.#world.moves) this.#compareWithMoves(event)
      else this.#compareWithAnswers(event)
    }
  }

  #acked(event: AnswerEvent): void {
    if (!this.#world.moves || event.reply.kind !== 'enqueue') return
    for (const { id, outcome } of event.reply.jobs) {
      if (outcome === 'inserted' && !this.#world.book.knows(id)) {
        this.#world.report('S1', id, 'its enqueue was acked, but the store never wrote it', [
          this.#world.invoked ?? null,
          event,
        ])
      }
    }
  }

  #moved(event: MoveEvent): void {
    const { job } = this.#world
    if (event.to !== null || job === undefined || job.state === null || isFinal(job.state)) return
    this.#world.report('S1', event.job, `it was forgotten by ${event.by} while it was ${job.state}`, [
      job.lastMove,
      event,
    ])
  }

  #compareWithMoves(event: SnapshotEvent): void {
    const there = new Set(event.jobs.map((job) => job.id))
    for (const job of this.#world.book.jobs.values()) {
      if (job.state === null || there.has(job.id)) continue
      const text = `it was ${job.state} and is gone, and nothing is on record that forgot it`
      this.#world.report('S1', job.id, text, [job.lastMove])
    }
    for (const [id, { state }] of this.#world.book.finished) {
      if (there.has(id)) continue
      this.#world.report('S1', id, `it was ${state} and is gone, and nothing is on record that forgot it`, [])
    }
  }

  #compareWithAnswers(event: SnapshotEvent): void {
    const there = new Set(event.jobs.map((job) => job.id))
    const mayForgetSince = (seq: number): boolean =>
      this.#world.calls.possibleSince('prune', seq) || this.#world.calls.possibleSince('discard', seq)
    for (const job of this.#world.book.jobs.values()) {
      if (!job.acked || there.has(job.id) || (job.mayBeFinal && mayForgetSince(0))) continue
      this.#world.report('S1', job.id, 'its enqueue was acked, and it is gone', [])
    }
    for (const [id, { earliestSeq, state }] of this.#world.book.finished) {
      if (there.has(id) || mayForgetSince(earliestSeq)) continue
      this.#world.report('S1', id, `it was ${state} and is gone, and nothing is on record that forgot it`, [])
    }
  }

  end(): void {}
}
