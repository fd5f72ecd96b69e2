/**
 * S14: what is enqueued again is the same job. A repeated flush carries and answers the same ids, no job is born twice,
 * and one intent of the application becomes one job at most, under whatever ids the client sends it.
 */
import { Aging } from '../aging.ts'
import type { AnswerEvent, EnqueuedJob, HistoryEvent, InvokeEvent, MoveEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export class Flushes implements Rule {
  readonly name = 'S14'
  readonly sees = ['move', 'invoke', 'answer'] as const
  readonly #world: World
  readonly #intents = new Map<string, string>()
  readonly #intentAging = new Aging<string>()

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'move') {
      if (event.from === null) this.#born(event)
    } else if (event.type === 'invoke') {
      if (event.call.kind === 'enqueue') this.#asked(event, event.call.flush, event.call.jobs)
    } else if (event.type === 'answer') {
      if (this.#world.invoked !== undefined) this.#answered(event, this.#world.invoked)
    }
  }

  #asked(event: InvokeEvent, flush: string, jobs: readonly EnqueuedJob[]): void {
    this.#intentAging.takeBefore(event.t - this.#world.bounds.flushMemoryMs, (intent) =>
      this.#intents.delete(intent),
    )
    const first = this.#world.book.flushes.get(flush)?.first
    if (first === undefined || first.call.kind !== 'enqueue') return
    const before = first.call.jobs
    const differs = jobs.find((job, index) => before[index]?.id !== job.id)
    if (differs !== undefined || jobs.length !== before.length) {
      const text = `flush ${flush} was repeated with other jobs than before`
      this.#world.report('S14', differs?.id ?? null, text, [first, event])
    }
  }

  #answered(event: AnswerEvent, invoked: InvokeEvent): void {
    const { call } = invoked
    const { reply } = event
    if (call.kind !== 'enqueue' || reply.kind !== 'enqueue') return
    const memory = this.#world.book.flushes.get(call.flush)
    reply.jobs.forEach(({ id, outcome }, index) => {
      const spec = call.jobs[index]
      if (spec === undefined) return
      const before = memory?.replies?.[index]
      if (before !== undefined && (before.id !== id || before.outcome !== outcome)) {
        const text = `flush ${call.flush} was answered ${before.outcome} ${before.id} before, and ${outcome} ${id} now`
        this.#world.report('S14', spec.id, text, [invoked, event])
      } else if (outcome === 'inserted' && id !== spec.id) {
        this.#world.report('S14', spec.id, `it was inserted, but under the id ${id}`, [invoked, event])
      }
      // Where there are moves, its birth has told already.
      if (!this.#world.moves && outcome === 'inserted' && spec.intent !== undefined)
        this.#noteIntent(spec.intent, id, event)
    })
    if (memory !== undefined) memory.replies = reply.jobs
  }

  #born(event: MoveEvent): void {
    if (this.#world.wasBorn(event.job)) {
      this.#world.report('S14', event.job, 'it was born a second time', [
        this.#world.job?.lastMove ?? null,
        event,
      ])
    }
    const intent = this.#world.job?.spec?.intent
    if (intent !== undefined) this.#noteIntent(intent, event.job, event)
  }

  #noteIntent(intent: string, job: string, event: HistoryEvent): void {
    const before = this.#intents.get(intent)
    if (before === undefined) {
      this.#intents.set(intent, job)
      this.#intentAging.add(event.t, intent)
    } else if (before !== job) {
      this.#world.report(
        'S14',
        job,
        `it is a second job for the intent ${intent}, which was ${before} already`,
        [event],
      )
    }
  }

  end(): void {}
}
