/**
 * Jobs that a worker has claimed and not started: plain jobs in a queue, and jobs of batch handlers, gathered by name.
 */
import type { JobDefinition } from '../job/definition.ts'
import type { Attempt } from './attempt.ts'
import type { Resized } from './batch-size.ts'
import { Gatherer, type Gathered } from './gathering.ts'
import type { BatchRoom } from './plan.ts'

/** Room for jobs of batch handlers when there are none. */
const NO_ROOM: ReadonlyMap<string, BatchRoom> = new Map()
const NO_BATCHES: readonly number[] = []

export class Backlog {
  /** Plain jobs; those before `#next` have left. Removing the first of a long array would move all others. */
  #line: Attempt[] = []
  #next = 0
  readonly #gatherers = new Map<string, Gatherer>()
  /** How much of the last claim from a queue was for batches. Room for more would be hoarding. */
  readonly #shares = new Map<string, number>()

  constructor(
    jobs: ReadonlyMap<string, JobDefinition>,
    onResized: (definition: JobDefinition, resized: Resized) => void,
  ) {
    for (const definition of jobs.values()) {
      const { batch, name } = definition
      if (batch === undefined) continue
      this.#gatherers.set(name, new Gatherer(definition, batch, (resized) => onResized(definition, resized)))
    }
  }

  /** Adds the jobs that a claim returned. */
  add(queue: string, attempts: readonly Attempt[]): void {
    this.#compact()
    if (this.#gatherers.size === 0) {
      for (const attempt of attempts) this.#line.push(attempt)
      return
    }
    const before = this.inLine
    for (const attempt of attempts) {
      // A suspect may crash the whole process, so it runs in no batch.
      const gatherer = attempt.job.crashes > 0 ? undefined : this.#gatherers.get(attempt.job.name)
      if (gatherer === undefined) this.#line.push(attempt)
      else gatherer.attempts.push(attempt)
    }
    if (attempts.length > 0) this.#shares.set(queue, 1 - (this.inLine - before) / attempts.length)
  }

  /** The plain job that is next in line. */
  get first(): Attempt | undefined {
    return this.#line[this.#next]
  }

  /** Takes the job or batch that has waited longest of those that can start. */
  take(nowMs: number): Attempt | Gathered | undefined {
    if (this.#gatherers.size === 0) return this.#shift()
    let first: Gatherer | undefined
    for (const gatherer of this.#gatherers.values()) {
      const isReady = gatherer.readyMs() <= nowMs
      if (isReady && gatherer.oldestMs() < (first?.oldestMs() ?? Infinity)) first = gatherer
    }
    if (first !== undefined && first.oldestMs() <= (this.first?.receivedMs ?? Infinity)) return first.take()
    return this.#shift()
  }

  /** Puts back what `take` took. */
  putBack(next: Attempt | Gathered): void {
    if ('attempts' in next) this.#gatherers.get(next.definition.name)?.attempts.unshift(...next.attempts)
    else if (this.#next === 0) this.#line.unshift(next)
    else this.#line[--this.#next] = next
  }

  /** Whether there are batch handlers. If not, jobs start in the order of their leases. */
  get gathers(): boolean {
    return this.#gatherers.size > 0
  }

  /** Number of jobs before this one in the order of their leases. */
  countBefore({ token, position }: Attempt): number {
    const isBefore = (one: Attempt): boolean =>
      one.token < token || (one.token === token && one.position < position)
    return this.all().filter(isBefore).length
  }

  /** Number of plain jobs. */
  get inLine(): number {
    return this.#line.length - this.#next
  }

  get size(): number {
    let size = this.inLine
    if (this.#gatherers.size > 0) for (const { attempts } of this.#gatherers.values()) size += attempts.length
    return size
  }

  all(): Attempt[] {
    return [
      ...this.#line.slice(this.#next),
      ...[...this.#gatherers.values()].flatMap(({ attempts }) => attempts),
    ]
  }

  /** By queue: how many jobs of batch handlers a claim may return. */
  batchRoom(): ReadonlyMap<string, BatchRoom> {
    if (this.#gatherers.size === 0) return NO_ROOM
    const room = new Map<string, { perSlot: number; gathered: number }>()
    for (const { definition, size, attempts } of this.#gatherers.values()) {
      const { perSlot = 0, gathered = 0 } = room.get(definition.queue) ?? {}
      room.set(definition.queue, { perSlot: perSlot + size.now, gathered: gathered + attempts.length })
    }
    for (const [queue, one] of room) one.perSlot = Math.floor(one.perSlot * (this.#shares.get(queue) ?? 1))
    return room
  }

  /** When each batch is ready to start. */
  batchReadyMs(): readonly number[] {
    if (this.#gatherers.size === 0) return NO_BATCHES
    return [...this.#gatherers.values()].map((gatherer) => gatherer.readyMs())
  }

  /** Takes the jobs that could have been started at this time and were not. */
  takeStale(staleMs: number): Attempt[] {
    const stale: Attempt[] = []
    for (let first = this.first; first !== undefined && first.receivedMs <= staleMs; first = this.first) {
      stale.push(first)
      this.#shift()
    }
    for (const gatherer of this.#gatherers.values())
      if (gatherer.readyMs() <= staleMs) stale.push(...gatherer.attempts.splice(0))
    return stale
  }

  takeAll(): Attempt[] {
    return this.takeIf(() => true)
  }

  /** Takes the selected jobs. */
  takeIf(isMeant: (attempt: Attempt) => boolean): Attempt[] {
    const taken = this.all().filter(isMeant)
    if (taken.length === 0) return taken
    const gone = new Set(taken)
    this.#line = this.#line.slice(this.#next).filter((attempt) => !gone.has(attempt))
    this.#next = 0
    for (const gatherer of this.#gatherers.values())
      gatherer.attempts = gatherer.attempts.filter((attempt) => !gone.has(attempt))
    return taken
  }

  #shift(): Attempt | undefined {
    const first = this.#line[this.#next]
    if (first === undefined) return undefined
    this.#next++
    if (this.#next === this.#line.length) this.#compact()
    return first
  }

  #compact(): void {
    if (this.#next === 0) return
    this.#line = this.#line.slice(this.#next)
    this.#next = 0
  }
}
