/** S2: a job that appears was enqueued, by a call that may have acted then; a lease was granted, and a run has a lease. */
import type { AnswerEvent, HistoryEvent, MoveEvent, RunEvent, SnapshotEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class NothingInvented implements Rule {
  readonly name = 'S2'
  readonly sees = ['move', 'run', 'answer', 'snapshot'] as const
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'move') this.#moved(event)
    else if (event.type === 'run') this.#ran(event)
    else if (event.type === 'answer') this.#claimed(event)
    else if (event.type === 'snapshot') this.#seen(event)
  }

  #moved(event: MoveEvent): void {
    const { job } = this.#world
    if (event.from !== null) {
      if (this.#isUnknown(event.job))
        this.#invented(event.job, `it went to ${event.to}, but nobody enqueued it`, event)
      return
    }
    // One that is born a second time is the business of S14.
    if (this.#world.wasBorn(event.job)) return
    const flush = job?.flush ?? null
    if (flush === null) return this.#invented(event.job, 'it was born, but nobody enqueued it', event)
    if (flush.possible > 0) return
    const text = 'it was born although every call that could enqueue it was over'
    this.#world.report('S2', event.job, text, [flush.first, event])
  }

  #ran(event: RunEvent): void {
    if (event.what !== 'start') return
    if (this.#isUnknown(event.job))
      return this.#invented(event.job, 'a handler ran it, but nobody enqueued it', event)
    if (this.#world.job !== undefined && this.#world.job.seenToken < event.token)
      this.#invented(
        event.job,
        `a handler ran it under token ${event.token}, which no claim was answered with`,
        event,
      )
  }

  #claimed(event: AnswerEvent): void {
    for (const { id, token, job } of this.#world.leased) {
      if (job === undefined) {
        if (this.#isUnknown(id)) this.#invented(id, 'it was claimed, but nobody enqueued it', event)
      } else if (this.#world.moves && job.token < token) {
        this.#invented(id, `a claim was answered with token ${token}, which the store never gave it`, event)
      }
    }
  }

  #seen(event: SnapshotEvent): void {
    for (const { id } of event.jobs) {
      if (this.#isUnknown(id)) this.#invented(id, 'it is in the store, but nobody enqueued it', null)
    }
  }

  #isUnknown(id: string): boolean {
    return (
      !this.#world.book.jobs.has(id) &&
      !this.#world.book.finished.has(id) &&
      !this.#world.book.forgotten.has(id)
    )
  }

  #invented(id: string, text: string, event: HistoryEvent | null): void {
    this.#world.report('S2', id, text, [event])
  }

  end(): void {}
}
