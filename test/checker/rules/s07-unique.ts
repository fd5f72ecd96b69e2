/**
 * S7: a unique key has one live holder at most, and is free as soon as its holder no longer holds it. Who is entitled to a
 * key is worked out here from the hold rule and the states; what the store says of it is only compared with that.
 *
 * A key is taken at birth, and anew by a replay and by a replace. `ready` is lost at the
 * claim and does not come back with a release; a time runs on whatever becomes of the job.
 */
import { isFinal, isWaiting } from '../book.ts'
import type {
  AnswerEvent,
  Hold,
  HistoryEvent,
  InvokeEvent,
  MoveEvent,
  State,
  UniqueSpec,
} from '../history.ts'
import type { Rule } from '../rule.ts'
import type { World } from '../world.ts'

interface Holder {
  readonly job: string
  /** Infinity while a state holds it. */
  readonly untilMs: number
  readonly taken: MoveEvent
}

export class UniqueKeys implements Rule {
  readonly name = 'S7'
  readonly sees = ['move', 'answer', 'invoke', 'node'] as const
  readonly #world: World
  readonly #holders = new Map<string, Holder>()
  /** Without moves: who was answered "inserted" last, and when. */
  readonly #inserted = new Map<string, { readonly job: string; readonly seq: number }>()
  /** Without moves: keys whose holder may have been given another hold rule by a replace. */
  readonly #doubtful = new Set<string>()

  /** Without moves: workers whose calls are not on record, or not yet. What they finish, nobody hears of. */
  readonly #silent = new Set<string>()

  constructor(world: World) {
    this.#world = world
  }

  on(event: HistoryEvent): void {
    if (event.type === 'node' && event.what === 'started' && event.queues.length > 0)
      this.#silent.add(event.node)
    if (event.type === 'invoke' && event.call.kind === 'cycle') this.#silent.delete(event.node)
    if (event.type === 'move') {
      if (event.unique !== null) this.#moved(event, event.unique)
    } else if (event.type === 'answer') {
      if (this.#world.invoked?.call.kind === 'enqueue') this.#answered(event, this.#world.invoked)
    } else if (event.type === 'invoke' && !this.#world.moves && event.call.kind === 'enqueue') {
      for (const { unique } of event.call.jobs) {
        if (unique?.onConflict === 'replace' && unique.hold !== 'unfinished') this.#doubtful.add(unique.key)
      }
    }
  }

  #moved(event: MoveEvent, { key, hold, held }: NonNullable<MoveEvent['unique']>): void {
    const before = this.#holders.get(key)
    if (takes(event)) {
      if (before !== undefined && before.job !== event.job && before.untilMs > event.t) {
        const text = `${event.by} gave it the key "${key}", which ${before.job} holds`
        this.#world.report('S7', event.job, text, [before.taken, event])
      }
      const untilMs = typeof hold === 'number' ? event.t + hold : Infinity
      this.#holders.set(key, { job: event.job, untilMs, taken: event })
    } else if (before?.job === event.job && !keeps(hold, event.to)) {
      this.#holders.delete(key)
    }
    if (event.to === null) return
    const holder = this.#holders.get(key)
    const entitled = holder?.job === event.job && holder.untilMs > event.t
    if (held === entitled) return
    // A step goes by the time it began at: what runs out meanwhile is still held to it.
    const ranOutMs = holder?.job === event.job ? event.t - holder.untilMs : Infinity
    if (held && ranOutMs <= this.#world.bounds.visibleMs) return
    const text = held
      ? `it is ${event.to}, but the store still counts it as the holder of the key "${key}"`
      : `it is ${event.to} and entitled to the key "${key}", but the store has freed it`
    this.#world.report('S7', event.job, text, [this.#world.job?.lastMove ?? null, event])
  }

  #answered(event: AnswerEvent, invoked: InvokeEvent): void {
    const { call } = invoked
    if (call.kind !== 'enqueue' || event.reply.kind !== 'enqueue') return
    // A repeat is answered as the first try was, which may have come through although nobody heard of it.
    const first = this.#world.book.flushes.get(call.flush)?.first ?? invoked
    event.reply.jobs.forEach(({ id, outcome }, index) => {
      const unique = call.jobs[index]?.unique ?? null
      if (unique === null || this.#doubtful.has(unique.key)) return
      if (outcome === 'duplicate') this.#refused(id, unique, first, event)
      if (outcome === 'inserted' && !this.#world.moves) this.#noteInserted(id, unique, first, event)
    })
  }

  /** Another one was turned away for the sake of this holder. */
  #refused(holder: string, { key }: UniqueSpec, invoked: InvokeEvent, event: AnswerEvent): void {
    const over = this.#finalSince(holder)
    if (over === null || over.seq > invoked.seq || over.t + this.#world.bounds.visibleMs > invoked.t) return
    const text = `it was ${over.state}, but its key "${key}" turned away a later enqueue`
    this.#world.report('S7', holder, text, [invoked, event])
  }

  /** When a job became final and lost its key with that; null where it did not. */
  #finalSince(id: string): { readonly state: string; readonly seq: number; readonly t: number } | null {
    const finished = this.#world.book.finished.get(id)
    if (finished !== undefined) return finished.timedKey ? null : finished
    const job = this.#world.book.jobs.get(id)
    const timed = typeof (job?.lastMove?.unique ?? job?.spec?.unique)?.hold === 'number'
    if (job === undefined || timed) return null
    const { lastMove } = job
    if (job.state === 'dead')
      return { state: 'dead', seq: lastMove?.seq ?? Infinity, t: lastMove?.t ?? Infinity }
    const died =
      job.finalBy === 'dead' && !this.#world.moves && !this.#world.calls.possibleSince('replay', job.seenSeq)
    return died ? { state: 'dead', seq: job.finalSeq, t: job.seenAt } : null
  }

  #noteInserted(id: string, { key, hold }: UniqueSpec, invoked: InvokeEvent, event: AnswerEvent): void {
    // Only 'unfinished' can be judged from outside: a claim whose answer was lost ends a 'ready' unseen.
    if (hold !== 'unfinished') return void this.#inserted.delete(key)
    const before = this.#inserted.get(key)
    const job = before === undefined ? undefined : this.#world.book.jobs.get(before.job)
    if (before !== undefined && before.job !== id && before.seq < invoked.seq && job !== undefined) {
      const mayBeFinal =
        job.mayBeFinal ||
        this.#silent.size > 0 ||
        this.#world.calls.possible('rescue') ||
        this.#world.calls.possibleSince('cancel', before.seq)
      if (!mayBeFinal) {
        const text = `it got the key "${key}", but nothing has finished ${before.job}, which got it before`
        this.#world.report('S7', id, text, [invoked, event])
      }
    }
    this.#inserted.set(key, { job: id, seq: event.seq })
  }

  end(): void {}
}

function takes({ by, from }: MoveEvent): boolean {
  return from === null || by === 'replace' || by === 'replay'
}

function keeps(hold: Hold, state: State | null): boolean {
  if (typeof hold === 'number') return true
  if (state === null) return false
  return hold === 'ready' ? isWaiting(state) : !isFinal(state)
}
