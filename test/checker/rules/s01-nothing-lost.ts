/** S1: an acked enqueue is in the store, live or final, until a prune or a discard is on record. */
import { isFinal } from '../book.ts'
import type { AnswerEvent, HistoryEvent, MoveEvent, SnapshotEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export function nothingLost(world: World): Rule {
  const { book, calls } = world

  function on(event: HistoryEvent): void {
    if (event.type === 'answer') acked(event)
    else if (event.type === 'move') moved(event)
    else if (event.type === 'snapshot') {
      if (world.moves) compareWithMoves(event)
      else compareWithAnswers(event)
    }
  }

  function acked(event: AnswerEvent): void {
    if (!world.moves || event.reply.kind !== 'enqueue') return
    for (const { id, outcome } of event.reply.jobs) {
      if (outcome === 'inserted' && !book.knows(id)) {
        world.report('S1', id, 'its enqueue was acked, but the store never wrote it', [
          world.invoked ?? null,
          event,
        ])
      }
    }
  }

  function moved(event: MoveEvent): void {
    const { job } = world
    if (event.to !== null || job === undefined || job.state === null || isFinal(job.state)) return
    world.report('S1', event.job, `it was forgotten by ${event.by} while it was ${job.state}`, [
      job.lastMove,
      event,
    ])
  }

  function compareWithMoves(event: SnapshotEvent): void {
    const there = new Set(event.jobs.map((job) => job.id))
    for (const job of book.jobs.values()) {
      if (job.state === null || there.has(job.id)) continue
      const text = `it was ${job.state} and is gone, and nothing is on record that forgot it`
      world.report('S1', job.id, text, [job.lastMove])
    }
    for (const [id, { state }] of book.finished) {
      if (there.has(id)) continue
      world.report('S1', id, `it was ${state} and is gone, and nothing is on record that forgot it`, [])
    }
  }

  function compareWithAnswers(event: SnapshotEvent): void {
    const there = new Set(event.jobs.map((job) => job.id))
    const mayForgetSince = (seq: number): boolean =>
      calls.possibleSince('prune', seq) || calls.possibleSince('discard', seq)
    for (const job of book.jobs.values()) {
      if (!job.acked || there.has(job.id) || (job.mayBeFinal && mayForgetSince(0))) continue
      world.report('S1', job.id, 'its enqueue was acked, and it is gone', [])
    }
    for (const [id, { earliestSeq, state }] of book.finished) {
      if (there.has(id) || mayForgetSince(earliestSeq)) continue
      world.report('S1', id, `it was ${state} and is gone, and nothing is on record that forgot it`, [])
    }
  }

  return { name: 'S1', sees: ['answer', 'move', 'snapshot'], on, end() {} }
}
