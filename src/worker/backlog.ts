/**
 * What a worker has claimed and not started: plain jobs in line, and jobs of batch handlers, which are gathered by name
 * until there are enough of them or they have waited long enough.
 */
import type { BatchRules } from '../job/batch.ts'
import type { JobDefinition } from '../job/definition.ts'
import type { Attempt } from './attempt.ts'
import { BatchSize, type Resized } from './batch-size.ts'

/** Jobs that one call of a batch handler is to be given. */
export interface Gathered {
  readonly definition: JobDefinition
  readonly attempts: readonly Attempt[]
  /** To be told how long the call took. */
  readonly size: BatchSize
}

/** Room for jobs of batch handlers, beyond what plain jobs get. */
export interface BatchRoom {
  /** How many jobs a free slot takes. */
  readonly perSlot: number
  readonly gathered: number
}

const NO_ROOM: BatchRoom = { perSlot: 0, gathered: 0 }

export class Backlog {
  #line: Attempt[] = []
  readonly #gatherers = new Map<string, Gatherer>()
  /** Of what the last claim from a queue brought: how much was for a batch. Room for the rest would be hoarding. */
  readonly #shares = new Map<string, number>()

  constructor(
    jobs: ReadonlyMap<string, JobDefinition>,
    onResized: (definition: JobDefinition, resized: Resized) => void,
  ) {
    for (const definition of jobs.values()) {
      if (definition.batch === undefined) continue
      const size = new BatchSize(definition.batch.size, (resized) => onResized(definition, resized))
      this.#gatherers.set(definition.name, new Gatherer(definition, definition.batch, size))
    }
  }

  /** What a claim has brought from a queue. */
  add(queue: string, attempts: readonly Attempt[]): void {
    const before = this.#line.length
    for (const attempt of attempts) {
      // A suspect may take its whole process down: it is nobody's company.
      const gatherer = attempt.job.crashes > 0 ? undefined : this.#gatherers.get(attempt.job.name)
      if (gatherer === undefined) this.#line.push(attempt)
      else gatherer.attempts.push(attempt)
    }
    if (this.#gatherers.size === 0 || attempts.length === 0) return
    const share = 1 - (this.#line.length - before) / attempts.length
    this.#shares.set(queue, share)
  }

  /** What has waited longest of all that can start. */
  next(nowMs: number): Attempt | Gathered | undefined {
    if (this.#gatherers.size === 0) return this.#line.shift()
    let first: Gatherer | undefined
    for (const gatherer of this.#gatherers.values()) {
      const isReady = gatherer.readyMs() <= nowMs
      if (isReady && gatherer.oldestMs() < (first?.oldestMs() ?? Infinity)) first = gatherer
    }
    if (first !== undefined && first.oldestMs() <= (this.#line[0]?.receivedMs ?? Infinity))
      return first.take()
    return this.#line.shift()
  }

  /** Puts back what `next` took. */
  putBack(next: Attempt | Gathered): void {
    if ('attempts' in next) this.#gatherers.get(next.definition.name)?.attempts.unshift(...next.attempts)
    else this.#line.unshift(next)
  }

  /** Whether there are batch handlers: if not, jobs start in the order of their leases. */
  get gathers(): boolean {
    return this.#gatherers.size > 0
  }

  /** Plain jobs, the next one first. */
  get line(): readonly Attempt[] {
    return this.#line
  }

  /** How many stand before this one in the order of their leases. */
  countBefore({ token, position }: Attempt): number {
    return this.all().filter((one) => one.token < token || (one.token === token && one.position < position))
      .length
  }

  /** Plain jobs in line. */
  get inLine(): number {
    return this.#line.length
  }

  get size(): number {
    let size = this.#line.length
    for (const { attempts } of this.#gatherers.values()) size += attempts.length
    return size
  }

  all(): Attempt[] {
    return [...this.#line, ...[...this.#gatherers.values()].flatMap(({ attempts }) => attempts)]
  }

  /** In what a claim from this queue may bring. */
  room(queue: string): BatchRoom {
    if (this.#gatherers.size === 0) return NO_ROOM
    let perSlot = 0
    let gathered = 0
    for (const gatherer of this.#gatherers.values()) {
      if (gatherer.definition.queue !== queue) continue
      perSlot += gatherer.size.now
      gathered += gatherer.attempts.length
    }
    return { perSlot: Math.floor(perSlot * (this.#shares.get(queue) ?? 1)), gathered }
  }

  /** When a batch has waited long enough, or what cannot start has waited for too long. */
  dueMs(nowMs: number, patienceMs: number): number {
    let dueMs = (this.#line[0]?.receivedMs ?? Infinity) + patienceMs
    for (const gatherer of this.#gatherers.values()) {
      const readyMs = gatherer.readyMs()
      dueMs = Math.min(dueMs, readyMs > nowMs ? readyMs : readyMs + patienceMs)
    }
    return dueMs
  }

  /** What could have been started at this time and was not: somebody else may run it sooner. */
  takeStale(staleMs: number): Attempt[] {
    const stale: Attempt[] = []
    while (this.#line[0] !== undefined && this.#line[0].receivedMs <= staleMs) {
      stale.push(this.#line.shift() as Attempt)
    }
    for (const gatherer of this.#gatherers.values()) {
      if (gatherer.readyMs() <= staleMs) stale.push(...gatherer.attempts.splice(0))
    }
    return stale
  }

  takeAll(): Attempt[] {
    return this.take(() => true)
  }

  /** Takes out those that are meant. */
  take(isMeant: (attempt: Attempt) => boolean): Attempt[] {
    const taken = this.all().filter(isMeant)
    if (taken.length > 0) this.keep((attempt) => !isMeant(attempt))
    return taken
  }

  keep(isKept: (attempt: Attempt) => boolean): void {
    this.#line = this.#line.filter(isKept)
    for (const gatherer of this.#gatherers.values()) gatherer.attempts = gatherer.attempts.filter(isKept)
  }
}

class Gatherer {
  /** The oldest first. */
  attempts: Attempt[] = []
  readonly definition: JobDefinition
  readonly size: BatchSize
  readonly #rules: BatchRules

  constructor(definition: JobDefinition, rules: BatchRules, size: BatchSize) {
    this.definition = definition
    this.#rules = rules
    this.size = size
  }

  oldestMs(): number {
    return this.attempts[0]?.receivedMs ?? Infinity
  }

  /** When a batch can start: once enough are there, or the oldest has waited long enough. */
  readyMs(): number {
    const { fill, waitMs } = this.#rules
    const enough = this.attempts[Math.min(fill, this.size.now) - 1]
    return Math.min(enough?.receivedMs ?? Infinity, this.oldestMs() + waitMs)
  }

  take(): Gathered {
    const { definition, size } = this
    return { definition, size, attempts: this.attempts.splice(0, size.now) }
  }
}
