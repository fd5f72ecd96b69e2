/**
 * S14: what is enqueued again is the same job. A repeated flush carries and answers the same ids, no job is born twice,
 * and one intent of the application becomes one job at most, under whatever ids the client sends it.
 */
import { Aging } from '../aging.ts'
import type { AnswerEvent, EnqueuedJob, HistoryEvent, InvokeEvent, MoveEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

export function flushes(world: World): Rule {
  const { book } = world
  const intents = new Map<string, string>()
  const intentAging = new Aging<string>()

  function on(event: HistoryEvent): void {
    if (event.type === 'move') {
      if (event.from === null) born(event)
    } else if (event.type === 'invoke') {
      if (event.call.kind === 'enqueue') asked(event, event.call.flush, event.call.jobs)
    } else if (event.type === 'answer') {
      if (world.invoked !== undefined) answered(event, world.invoked)
    }
  }

  function asked(event: InvokeEvent, flush: string, jobs: readonly EnqueuedJob[]): void {
    intentAging.takeBefore(event.t - world.bounds.flushMemoryMs, (intent) => intents.delete(intent))
    const first = book.flushes.get(flush)?.first
    if (first === undefined || first.call.kind !== 'enqueue') return
    const before = first.call.jobs
    const differs = jobs.find((job, index) => before[index]?.id !== job.id)
    if (differs !== undefined || jobs.length !== before.length) {
      const text = `flush ${flush} was repeated with other jobs than before`
      world.report('S14', differs?.id ?? null, text, [first, event])
    }
  }

  function answered(event: AnswerEvent, invoked: InvokeEvent): void {
    const { call } = invoked
    const { reply } = event
    if (call.kind !== 'enqueue' || reply.kind !== 'enqueue') return
    const memory = book.flushes.get(call.flush)
    reply.jobs.forEach(({ id, outcome }, index) => {
      const spec = call.jobs[index]
      if (spec === undefined) return
      const before = memory?.replies?.[index]
      if (before !== undefined && (before.id !== id || before.outcome !== outcome)) {
        const text = `flush ${call.flush} was answered ${before.outcome} ${before.id} before, and ${outcome} ${id} now`
        world.report('S14', spec.id, text, [invoked, event])
      } else if (outcome === 'inserted' && id !== spec.id) {
        world.report('S14', spec.id, `it was inserted, but under the id ${id}`, [invoked, event])
      }
      // Where there are moves, its birth has told already.
      if (!world.moves && outcome === 'inserted' && spec.intent !== undefined)
        noteIntent(spec.intent, id, event)
    })
    if (memory !== undefined) memory.replies = reply.jobs
  }

  function born(event: MoveEvent): void {
    if (world.wasBorn(event.job)) {
      world.report('S14', event.job, 'it was born a second time', [world.job?.lastMove ?? null, event])
    }
    const intent = world.job?.spec?.intent
    if (intent !== undefined) noteIntent(intent, event.job, event)
  }

  function noteIntent(intent: string, job: string, event: HistoryEvent): void {
    const before = intents.get(intent)
    if (before === undefined) {
      intents.set(intent, job)
      intentAging.add(event.t, intent)
    } else if (before !== job) {
      world.report('S14', job, `it is a second job for the intent ${intent}, which was ${before} already`, [
        event,
      ])
    }
  }

  return { name: 'S14', sees: ['move', 'invoke', 'answer'], on, end() {} }
}
