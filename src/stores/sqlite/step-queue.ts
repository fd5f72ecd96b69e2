/**
 * Runs steps in the order in which they were asked for. Those that wait together share a transaction; between two
 * transactions, and while another process has the write lock, the event loop keeps running, and so do steps that only
 * read.
 */
import { asError, sleep, systemClock } from '../../std/clock.ts'
import type { WakeUp } from '../store.ts'
import { groupsOf, type Call, type Outcome, type Ran, type Runner } from './engine/runner.ts'
import type { StepAnswer, StepArgs, StepName } from './engine/steps.ts'
import { LOCK_MS, pause } from './lock.ts'
import { isBusy } from './sqlite-errors.ts'

interface Waiting extends Call {
  readonly untilMs: number
  readonly done: (outcome: Outcome) => void
}

export class StepQueue {
  readonly #runner: Runner
  readonly #onRan: (hints: readonly WakeUp[]) => void
  #calls: Waiting[] = []
  #isRunning = false
  #drained: Promise<void> = Promise.resolve()

  /** `onRan`: called after each transaction, when all its steps have their outcome. */
  constructor(runner: Runner, onRan: (hints: readonly WakeUp[]) => void) {
    this.#runner = runner
    this.#onRan = onRan
  }

  async call<Name extends StepName>(name: Name, ...args: StepArgs<Name>): Promise<StepAnswer<Name>> {
    const answer = await new Promise<unknown>((resolve, reject) => {
      this.push({ name, args }, (outcome) => {
        if ('value' in outcome) resolve(outcome.value)
        else reject(asError(outcome.error))
      })
    })
    return answer as StepAnswer<Name>
  }

  push({ name, args }: Call, done: (outcome: Outcome) => void): void {
    this.#calls.push({ name, args, done, untilMs: systemClock.monotonicMs() + LOCK_MS })
    if (this.#isRunning) return
    this.#isRunning = true
    this.#drained = this.#drain()
  }

  /** Resolves when all that was asked for is answered. */
  idle(): Promise<void> {
    return this.#drained
  }

  async #drain(): Promise<void> {
    while (this.#calls.length > 0) {
      // What arrives in this turn of the loop joins.
      await sleep(systemClock, 0)
      const [group = []] = groupsOf(this.#calls)
      this.#calls = this.#calls.slice(group.length)
      const { outcomes, hints } = this.#run(group)
      const busy = outcomes.filter(([call, outcome]) => !finished(call, outcome)).map(([call]) => call)
      this.#onRan(hints)
      // Behind the others, some of which only read.
      this.#calls.push(...busy)
      if (busy.length > 0) await pause()
    }
    this.#isRunning = false
  }

  /** Whatever goes wrong, every call is answered. */
  #run(group: readonly Waiting[]): Ran<Waiting> {
    try {
      return this.#runner.run(group)
    } catch (error) {
      return { outcomes: group.map((call) => [call, { error, cause: error }] as const), hints: [] }
    }
  }
}

/** False for a call that waits for the write lock and still has time. */
function finished({ done, untilMs }: Waiting, outcome: Outcome): boolean {
  if ('error' in outcome && isBusy(outcome.cause) && systemClock.monotonicMs() < untilMs) return false
  done(outcome)
  return true
}
