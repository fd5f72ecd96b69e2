/**
 * Runs steps in transactions on one connection. Reads have a snapshot. Writes that wait together share one transaction,
 * and so one sync of the disk; if one of them throws, they run again one by one, so that only that one fails.
 */
import type { WakeUp } from '../../store.ts'
import type { Database } from '../driver.ts'
import { rollBack } from '../lock.ts'
import { isBusy, isIoError, storeError } from '../sqlite-errors.ts'
import type { Engine } from './engine.ts'
import { IDLE, isRead, READS, WRITES, type StepName } from './steps.ts'

export interface Call {
  readonly name: StepName
  /** As the step of that name takes them. */
  readonly args: readonly unknown[]
}

/** `cause`: the error as the library threw it. */
export type Outcome = { readonly value: unknown } | { readonly error: unknown; readonly cause: unknown }

export interface Ran<C extends Call> {
  readonly outcomes: readonly (readonly [call: C, outcome: Outcome])[]
  /** To be told to listeners, of this process and of others. */
  readonly hints: readonly WakeUp[]
}

/** What became of calls that could not be run. */
export function failed<C extends Call>(calls: readonly C[], error: unknown): Ran<C> {
  return { outcomes: calls.map((call) => [call, { error, cause: error }] as const), hints: [] }
}

export function hasIoError({ outcomes }: Ran<Call>): boolean {
  return outcomes.some(([, outcome]) => 'error' in outcome && isIoError(outcome.cause))
}

export interface RunnerParts {
  readonly database: Database
  readonly engine: Engine
  /** For the message of an error: who holds the lock. */
  readonly lockHolder: () => string | null
  /** Whether an I/O error means that the disk has no room. */
  readonly isDiskFull?: () => boolean
}

/** The arguments of a step are in its type; a call that passes through the thread has lost it. */
type Step = (engine: Engine, ...args: readonly unknown[]) => unknown

/** How much one transaction does: others, in this process and elsewhere, wait for it. */
const MAX_WEIGHT = 1_000

export class Runner {
  readonly #parts: RunnerParts

  constructor(parts: RunnerParts) {
    this.#parts = parts
  }

  run<C extends Call>(calls: readonly C[]): Ran<C> {
    const outcomes: (readonly [C, Outcome])[] = []
    const hints: WakeUp[] = []
    const writes: C[] = []
    for (const call of calls) {
      const answer = this.#withoutWriting(call)
      if (answer === undefined) writes.push(call)
      else outcomes.push([call, answer])
    }
    for (const group of groupsOf(writes)) {
      const ran = this.#write(group)
      outcomes.push(...ran.outcomes)
      hints.push(...ran.hints)
    }
    return { outcomes, hints }
  }

  /** The outcome of a read, or of a write that has nothing to write. */
  #withoutWriting({ name, args }: Call): Outcome | undefined {
    const { engine } = this.#parts
    if (isRead(name)) return this.#attempt('begin', () => (READS[name] as Step)(engine.begin(), ...args))
    const idle = IDLE[name] as Step | undefined
    if (idle === undefined) return undefined
    const outcome = this.#attempt('begin', () => idle(engine.begin(), ...args))
    return 'value' in outcome && outcome.value === undefined ? undefined : outcome
  }

  #write<C extends Call>(group: readonly C[]): Ran<C> {
    const { engine } = this.#parts
    const outcome = this.#attempt('begin immediate', () => {
      const values = group.map(({ name, args }) =>
        (WRITES[name as keyof typeof WRITES] as Step)(engine.begin(), ...args),
      )
      engine.writeCounts()
      return values
    })
    if ('value' in outcome) {
      const values = outcome.value
      return {
        outcomes: group.map((call, at) => [call, { value: values[at] }] as const),
        hints: engine.takeHints(),
      }
    }
    engine.rolledBack()
    if (group.length === 1 || isBusy(outcome.cause))
      return { outcomes: group.map((call) => [call, outcome] as const), hints: [] }
    const alone = group.map((call) => this.#write([call]))
    return { outcomes: alone.flatMap((ran) => ran.outcomes), hints: alone.flatMap((ran) => ran.hints) }
  }

  #attempt<T>(
    begin: 'begin' | 'begin immediate',
    work: () => T,
  ): { readonly value: T } | { readonly error: unknown; readonly cause: unknown } {
    const { database, lockHolder, isDiskFull } = this.#parts
    let isOpen = false
    try {
      this.#begin(begin)
      isOpen = true
      const value = work()
      database.exec('commit')
      return { value }
    } catch (cause) {
      if (isOpen) rollBack(database)
      return { error: storeError(cause, lockHolder, isDiskFull), cause }
    }
  }

  /** A rollback that failed leaves its transaction open, and then no other could ever begin. */
  #begin(begin: 'begin' | 'begin immediate'): void {
    const { database } = this.#parts
    try {
      database.exec(begin)
    } catch (error) {
      if (isBusy(error)) throw error
      rollBack(database)
      database.exec(begin)
    }
  }
}

/** Calls that may share a transaction, in order. */
export function groupsOf<C extends Call>(calls: readonly C[]): C[][] {
  const groups: C[][] = []
  let weight = Infinity
  for (const call of calls) {
    const own = weightOf(call)
    if (weight + own > MAX_WEIGHT) {
      groups.push([])
      weight = 0
    }
    groups.at(-1)?.push(call)
    weight += own
  }
  return groups
}

/** Where a step that touches many jobs takes its limit. */
const LIMITS: { readonly [Name in StepName]?: (args: readonly unknown[]) => unknown } = {
  promote: ([limit]) => limit,
  rescue: ([limit]) => limit,
  prune: ([, limit]) => limit,
  change: ([, , limit]) => limit,
}

/** About how many jobs a call touches. */
function weightOf({ name, args }: Call): number {
  const limit = LIMITS[name]
  if (limit !== undefined) return 1 + Number(limit(args))
  const { jobs, settle, claim } = (args[0] ?? {}) as {
    readonly jobs?: readonly unknown[]
    readonly settle?: readonly unknown[]
    readonly claim?: { readonly limit: number } | null
  }
  return 1 + (jobs?.length ?? 0) + (settle?.length ?? 0) + (claim?.limit ?? 0)
}
