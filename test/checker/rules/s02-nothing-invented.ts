/** S2: a job that appears was enqueued, by a call that may have acted then; a lease was granted, and a run has a lease. */
import type { AnswerEvent, HistoryEvent, MoveEvent, RunEvent, SnapshotEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export function nothingInvented(world: World): Rule {
  const { book } = world

  function on(event: HistoryEvent): void {
    if (event.type === 'move') moved(event)
    else if (event.type === 'run') ran(event)
    else if (event.type === 'answer') claimed(event)
    else if (event.type === 'snapshot') seen(event)
  }

  function moved(event: MoveEvent): void {
    const { job } = world
    if (event.from !== null) {
      if (isUnknown(event.job)) invented(event.job, `it went to ${event.to}, but nobody enqueued it`, event)
      return
    }
    // One that is born a second time is the business of S14.
    if (world.wasBorn(event.job)) return
    const flush = job?.flush ?? null
    if (flush === null) return invented(event.job, 'it was born, but nobody enqueued it', event)
    if (flush.possible > 0) return
    const text = 'it was born although every call that could enqueue it was over'
    world.report('S2', event.job, text, [flush.first, event])
  }

  function ran(event: RunEvent): void {
    if (event.what !== 'start') return
    if (isUnknown(event.job)) return invented(event.job, 'a handler ran it, but nobody enqueued it', event)
    if (world.job !== undefined && world.job.seenToken < event.token)
      invented(
        event.job,
        `a handler ran it under token ${event.token}, which no claim was answered with`,
        event,
      )
  }

  function claimed(event: AnswerEvent): void {
    for (const { id, token, job } of world.leased) {
      if (job === undefined) {
        if (isUnknown(id)) invented(id, 'it was claimed, but nobody enqueued it', event)
      } else if (world.moves && job.token < token) {
        invented(id, `a claim was answered with token ${token}, which the store never gave it`, event)
      }
    }
  }

  function seen(event: SnapshotEvent): void {
    for (const { id } of event.jobs) {
      if (isUnknown(id)) invented(id, 'it is in the store, but nobody enqueued it', null)
    }
  }

  function isUnknown(id: string): boolean {
    return !book.jobs.has(id) && !book.finished.has(id) && !book.forgotten.has(id)
  }

  function invented(id: string, text: string, event: HistoryEvent | null): void {
    world.report('S2', id, text, [event])
  }

  return { name: 'S2', sees: ['move', 'run', 'answer', 'snapshot'], on, end() {} }
}
