/** S6: a final job stays as it is, until it is forgotten; a dead one may also be replayed, by a call that is on record. */
import { isFinal, type Job } from '../book.ts'
import type { AnswerEvent, HistoryEvent, InvokeEvent, MoveEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export function finalIsFinal(world: World): Rule {
  const { book, calls } = world

  function on(event: HistoryEvent): void {
    if (event.type === 'move') moved(event)
    else if (event.type === 'answer' && !world.moves && world.invoked !== undefined)
      claimed(event, world.invoked)
  }

  function moved(event: MoveEvent): void {
    // A second birth is S14's business, a settle without a lease S4's.
    if (event.from === null || event.by === 'settle') return
    const state = world.job?.state ?? world.finished?.state ?? null
    if (state === null) {
      if (world.job === undefined && book.forgotten.has(event.job)) undone(event, 'forgotten')
      return
    }
    if (!isFinal(state)) return
    if (event.to === null) return
    if (event.by !== 'replay' || state !== 'dead') return undone(event, state)
    if (!calls.possible('replay')) {
      const text = 'it was replayed, but no replay is on record that could have done so'
      world.report('S6', event.job, text, [world.job?.lastMove ?? null, event])
    }
  }

  function undone(event: MoveEvent, state: string): void {
    const text = `it was ${state}, and ${event.by} took it to ${event.to}`
    world.report('S6', event.job, text, [world.job?.lastMove ?? null, event])
  }

  /** Without moves: a claim that was sent after a client knew that the job is final. */
  function claimed(event: AnswerEvent, invoked: InvokeEvent): void {
    for (const { id, job } of world.leased) {
      const finalSeq = book.finished.get(id)?.seq ?? finalSeqOf(job)
      if (finalSeq === 0 || invoked.seq < finalSeq) continue
      world.report('S6', id, 'it was claimed after it had been settled for good', [invoked, event])
    }
  }

  function finalSeqOf(job: Job | undefined): number {
    if (job === undefined || job.finalSeq === 0) return 0
    // It may have been dead for a while before the answer that said so.
    return calls.possibleSince('replay', job.seenSeq) ? 0 : job.finalSeq
  }

  return { name: 'S6', sees: ['move', 'answer'], on, end() {} }
}
