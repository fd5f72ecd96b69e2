/** S16: once a pause is acked, no claim takes from the queue; once a cancel is, no claim takes the job. */
import type { AnswerEvent, HistoryEvent, InvokeEvent, MoveEvent, SettingEvent } from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

interface Setting {
  paused: boolean
  /** When the store last changed it, either way: before that it may have been the other. */
  lastSeq: number
}

/** Without the store's own settings: what can be known from pauses and resumes that were asked for. */
interface Asked {
  pauseInvoked: number
  pauseAnswered: number
  /** Resumes that may still act, and when the last one that cannot was over. */
  resumesPossible: number
  resumeEnded: number
}

export function pauseAndCancel(world: World): Rule {
  const settings = new Map<string, Setting>()
  const asked = new Map<string, Asked>()

  function on(event: HistoryEvent): void {
    switch (event.type) {
      case 'move':
        if (event.by === 'claim') claimed(event)
        return
      case 'setting':
        return set(event)
      case 'invoke':
        if (event.call.kind === 'resume') askedFor(event.call.queue).resumesPossible++
        return
      case 'answer':
        if (world.invoked !== undefined) answered(event, world.invoked)
        return
      case 'failed':
        if (world.invoked?.call.kind === 'resume') askedFor(world.invoked.call.queue).resumesPossible--
        return
      default:
    }
  }

  function claimed(event: MoveEvent): void {
    if (settings.get(event.queue)?.paused === true) {
      world.report('S16', event.job, `claimed from the queue ${event.queue}, which is paused`, [event])
    }
    if (world.job !== undefined && world.job.cancelledSeq > 0) {
      world.report('S16', event.job, 'claimed after its cancel had been acked', [event])
    }
  }

  function set({ queue, paused, seq }: SettingEvent): void {
    const setting = settings.get(queue)
    if (setting === undefined) {
      settings.set(queue, { paused, lastSeq: seq })
    } else {
      setting.paused = paused
      setting.lastSeq = seq
    }
  }

  function answered(event: AnswerEvent, invoked: InvokeEvent): void {
    const { call } = invoked
    if (call.kind === 'pause') return acked(call.queue, invoked, event)
    if (call.kind === 'resume') {
      const known = askedFor(call.queue)
      known.resumesPossible--
      known.resumeEnded = event.seq
    }
    if (!world.moves && call.kind === 'cycle' && call.claim !== null) leased(call.claim.queue, invoked, event)
  }

  function acked(queue: string, invoked: InvokeEvent, event: AnswerEvent): void {
    const known = askedFor(queue)
    if (invoked.seq > known.pauseInvoked) {
      known.pauseInvoked = invoked.seq
      known.pauseAnswered = event.seq
    }
    if (!world.moves) return
    const setting = settings.get(queue)
    if (setting !== undefined && (setting.paused || setting.lastSeq > invoked.seq)) return
    world.report('S16', null, `a pause of the queue ${queue} was acked, but had no effect`, [invoked, event])
  }

  function leased(queue: string, invoked: InvokeEvent, event: AnswerEvent): void {
    const paused = surelyPaused(queue, invoked.seq)
    for (const { id, job } of world.leased) {
      if (paused)
        world.report('S16', id, `claimed from the queue ${queue}, which is paused`, [invoked, event])
      if (job === undefined || job.cancelledSeq === 0 || job.cancelledSeq > invoked.seq) continue
      if (world.calls.possibleSince('replay', job.cancelledSeq)) continue
      world.report('S16', id, 'claimed after its cancel had been acked', [invoked, event])
    }
  }

  function surelyPaused(queue: string, sinceSeq: number): boolean {
    const known = asked.get(queue)
    if (known === undefined || known.pauseAnswered === 0 || known.pauseAnswered > sinceSeq) return false
    return known.resumesPossible === 0 && known.resumeEnded < known.pauseInvoked
  }

  function askedFor(queue: string): Asked {
    let known = asked.get(queue)
    if (known === undefined) {
      known = { pauseInvoked: 0, pauseAnswered: 0, resumesPossible: 0, resumeEnded: 0 }
      asked.set(queue, known)
    }
    return known
  }

  return { name: 'S16', sees: ['move', 'setting', 'invoke', 'answer', 'failed'], on, end() {} }
}
