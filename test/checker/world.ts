/** All that rules look at. It takes an event in after the rules have seen it: they compare the event with what was before. */
import { Book, type Finished, type Job } from './book.ts'
import { Calls } from './calls.ts'
import { Clients } from './clients.ts'
import { Fleet } from './fleet.ts'
import type { AnswerEvent, HistoryEvent, InvokeEvent } from './history.ts'
import type { Bounds } from './options.ts'
import type { RuleName, Violation } from './violation.ts'

/** A job in the answer to a claim. */
export interface Leased {
  readonly id: string
  readonly token: number
  readonly attempt: number
  readonly job: Job | undefined
}

const NONE: readonly Leased[] = []

/** Firing a tick is a flush of one job, whoever fires it. */
function flushOf({ schedule, tick }: { readonly schedule: string; readonly tick: number }): string {
  return `${schedule} ${tick}`
}

export class World {
  readonly bounds: Bounds
  readonly book: Book
  readonly calls = new Calls()
  readonly fleet: Fleet
  readonly clients: Clients
  readonly violations: Violation[] = []
  /** All that was found, also what is not kept. */
  violationCount = 0
  /** Whether the store's own events are on record. */
  moves = false
  /** Of the present event. */
  t = 0
  seq = -1
  /** The job of a move or run, as it stood before: one of the two, or neither where nobody knows it. */
  job: Job | undefined
  finished: Finished | undefined
  /** The call that an answer, failed or unknown ends. */
  invoked: InvokeEvent | undefined
  /** What an answer leased: looked up once for the four rules that ask. */
  leased: readonly Leased[] = NONE
  readonly #reported = new Set<string>()

  constructor(bounds: Bounds) {
    this.bounds = bounds
    this.book = new Book(bounds.flushMemoryMs)
    this.fleet = new Fleet(bounds)
    this.clients = new Clients(this.book)
  }

  /** One violation of a rule a job is enough: what follows is often only a consequence. */
  report(rule: RuleName, job: string | null, text: string, events: readonly (HistoryEvent | null)[]): void {
    const key = `${rule} ${job ?? text}`
    if (this.#reported.has(key)) return
    this.#reported.add(key)
    this.violationCount++
    if (this.violations.length >= this.bounds.maxViolations) return
    this.violations.push({ rule, job, text, seq: this.seq, events: events.filter((event) => event !== null) })
  }

  /** Before the rules see the event. */
  enter(event: HistoryEvent): void {
    this.t = event.t
    this.seq = event.seq
    switch (event.type) {
      case 'begin':
        this.moves = event.moves
        return
      case 'move':
      case 'run':
        this.job = this.book.jobs.get(event.job)
        this.finished = this.job === undefined ? this.book.finished.get(event.job) : undefined
        return
      case 'answer':
        this.invoked = this.calls.open.get(event.op)
        this.leased = this.#leasedBy(event)
        return
      case 'failed':
      case 'unknown':
        this.invoked = this.calls.open.get(event.op)
        return
      default:
    }
  }

  #leasedBy({ reply }: AnswerEvent): readonly Leased[] {
    if (reply.kind !== 'cycle' || reply.leases.length === 0) return NONE
    const leased: Leased[] = []
    for (const { token, jobs } of reply.leases) {
      for (const { id, attempt } of jobs) leased.push({ id, token, attempt, job: this.book.jobs.get(id) })
    }
    return leased
  }

  /** Whether the job of the present move was in the store before, as far as we remember. */
  wasBorn(id: string): boolean {
    const there = this.job === undefined ? this.finished !== undefined : this.job.state !== null
    return there || this.book.forgotten.has(id)
  }

  /** After the rules have seen it. */
  leave(event: HistoryEvent): void {
    switch (event.type) {
      case 'move': {
        const before = this.job
        if (before?.state === 'running') this.fleet.left(before)
        const after = this.book.apply(event, before)
        if (after !== undefined && event.to === 'running') this.fleet.claimed(after)
        return
      }
      case 'invoke':
        this.calls.begin(event)
        if (event.call.kind === 'enqueue') this.book.ask(event, event.call.flush, event.call.jobs)
        if (event.call.kind === 'fire') this.book.ask(event, flushOf(event.call), [event.call.job])
        this.fleet.apply(event, undefined)
        if (!this.moves) this.clients.asked(event)
        return
      case 'answer':
      case 'failed':
      case 'unknown':
        if (this.invoked === undefined) return
        this.#close(this.invoked, event.seq, event.type !== 'unknown')
        this.fleet.apply(event, this.invoked)
        if (event.type === 'answer') this.clients.told(event, this.invoked, this.leased, this.moves)
        return
      case 'run':
        if (this.job !== undefined && event.what === 'start') this.job.startedToken = event.token
        return
      default:
        this.fleet.apply(event, undefined)
    }
  }

  #close(invoked: InvokeEvent, seq: number, settled: boolean): void {
    this.calls.end(invoked, seq, settled)
    const { call } = invoked
    if (!settled || (call.kind !== 'enqueue' && call.kind !== 'fire')) return
    const flush = this.book.flushes.get(call.kind === 'fire' ? flushOf(call) : call.flush)
    if (flush !== undefined) flush.possible--
  }
}
