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

export class PauseAndCancel implements Rule {
  readonly name = 'S16'
  readonly sees = ['move', 'setting', 'invoke', 'answer', 'failed'] as const
  readonly #world: World
  readonly #settings = new Map<string, Setting>()
  readonly #asked = new Map<string, Asked>()

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    switch (event.type) {
      case 'move':
        if (event.by === 'claim') this.#claimed(event)
        return
      case 'setting':
        return this.#set(event)
      case 'invoke':
        if (event.call.kind === 'resume') this.#askedFor(event.call.queue).resumesPossible++
        return
      case 'answer':
        if (this.#world.invoked !== undefined) this.#answered(event, this.#world.invoked)
        return
      case 'failed':
        if (this.#world.invoked?.call.kind === 'resume')
          this.#askedFor(this.#world.invoked.call.queue).resumesPossible--
        return
      default:
    }
  }

  #claimed(event: MoveEvent): void {
    if (this.#settings.get(event.queue)?.paused === true) {
      this.#world.report('S16', event.job, `claimed from the queue ${event.queue}, which is paused`, [event])
    }
    if (this.#world.job !== undefined && this.#world.job.cancelledSeq > 0) {
      this.#world.report('S16', event.job, 'claimed after its cancel had been acked', [event])
    }
  }

  #set({ queue, paused, seq }: SettingEvent): void {
    const setting = this.#settings.get(queue)
    if (setting === undefined) {
      this.#settings.set(queue, { paused, lastSeq: seq })
    } else {
      setting.paused = paused
      setting.lastSeq = seq
    }
  }

  #answered(event: AnswerEvent, invoked: InvokeEvent): void {
    const { call } = invoked
    if (call.kind === 'pause') return this.#acked(call.queue, invoked, event)
    if (call.kind === 'resume') {
      const known = this.#askedFor(call.queue)
      known.resumesPossible--
      known.resumeEnded = event.seq
    }
    if (!this.#world.moves && call.kind === 'cycle' && call.claim !== null)
      this.#leased(call.claim.queue, invoked, event)
  }

  #acked(queue: string, invoked: InvokeEvent, event: AnswerEvent): void {
    const known = this.#askedFor(queue)
    if (invoked.seq > known.pauseInvoked) {
      known.pauseInvoked = invoked.seq
      known.pauseAnswered = event.seq
    }
    if (!this.#world.moves) return
    const setting = this.#settings.get(queue)
    if (setting !== undefined && (setting.paused || setting.lastSeq > invoked.seq)) return
    this.#world.report('S16', null, `a pause of the queue ${queue} was acked, but had no effect`, [
      invoked,
      event,
    ])
  }

  #leased(queue: string, invoked: InvokeEvent, event: AnswerEvent): void {
    const paused = this.#surelyPaused(queue, invoked.seq)
    for (const { id, job } of this.#world.leased) {
      if (paused)
        this.#world.report('S16', id, `claimed from the queue ${queue}, which is paused`, [invoked, event])
      if (job === undefined || job.cancelledSeq === 0 || job.cancelledSeq > invoked.seq) continue
      if (this.#world.calls.possibleSince('replay', job.cancelledSeq)) continue
      this.#world.report('S16', id, 'claimed after its cancel had been acked', [invoked, event])
    }
  }

  #surelyPaused(queue: string, sinceSeq: number): boolean {
    const known = this.#asked.get(queue)
    if (known === undefined || known.pauseAnswered === 0 || known.pauseAnswered > sinceSeq) return false
    return known.resumesPossible === 0 && known.resumeEnded < known.pauseInvoked
  }

  #askedFor(queue: string): Asked {
    let known = this.#asked.get(queue)
    if (known === undefined) {
      known = { pauseInvoked: 0, pauseAnswered: 0, resumesPossible: 0, resumeEnded: 0 }
      this.#asked.set(queue, known)
    }
    return known
  }

  end(): void {}
}
