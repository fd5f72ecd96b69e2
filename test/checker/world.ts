/** All that rules look at. It takes an event in after the rules have seen it: they compare the event with what was before. */
import { Book, type Finished, type Job } from './book.ts'
import { Calls } from './calls.ts'
import { Clients } from './clients.ts'
import { Fleet } from './fleet.ts'
import type { HistoryEvent, InvokeEvent, PhaseEvent } from './history.ts'
import type { Bounds } from './options.ts'
import type { RuleName, Violation } from './violation.ts'

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
  t = 0
  seq = -1
  phase: PhaseEvent['phase'] = 'faulty'
  /** The job of a move or run, as it stood before: one of the two, or neither where nobody knows it. */
  job: Job | undefined
  finished: Finished | undefined
  /** The call that an answer, failed or unknown ends. */
  invoked: InvokeEvent | undefined
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
    this.violations.push({ rule, job, text, events: events.filter((event) => event !== null) })
  }

  /** Before the rules see the event. */
  enter(event: HistoryEvent): void {
    this.t = event.t
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
      case 'failed':
      case 'unknown':
        this.invoked = this.calls.open.get(event.op)
        return
      default:
    }
  }

  /** After the rules have seen it. */
  leave(event: HistoryEvent): void {
    this.seq = event.seq
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
        this.fleet.apply(event, undefined)
        if (!this.moves) this.clients.asked(event)
        return
      case 'answer':
      case 'failed':
      case 'unknown':
        if (this.invoked === undefined) return
        this.#close(this.invoked, event.seq, event.type !== 'unknown')
        this.fleet.apply(event, this.invoked)
        if (event.type === 'answer') this.clients.told(event, this.invoked, this.moves)
        return
      case 'run':
        if (this.job !== undefined && event.what === 'start') this.job.startedToken = event.token
        return
      case 'phase':
        this.phase = event.phase
        return
      default:
        this.fleet.apply(event, undefined)
    }
  }

  #close(invoked: InvokeEvent, seq: number, settled: boolean): void {
    this.calls.end(invoked, seq, settled)
    if (!settled || invoked.call.kind !== 'enqueue') return
    const flush = this.book.flushes.get(invoked.call.flush)
    if (flush !== undefined) flush.possible--
  }
}
