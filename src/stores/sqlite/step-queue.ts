/**
 * Runs steps in the order in which they were asked for. Those that wait together share a transaction; between two
 * transactions, and while another process has the write lock, the event loop keeps running, and so do steps that only
 * read.
 */
import { sleep, systemClock, type Clock } from '../../std/clock.ts'
import { toError } from '../../std/text.ts'
import type { WakeUp } from '../store.ts'
import { failed, groupsOf, type Call, type Outcome, type Ran } from './engine/runner.ts'
import type { StepAnswer, StepArgs, StepName } from './engine/steps.ts'
import { LOCK_MS, pause } from './lock.ts'
import { isBusy } from './sqlite-errors.ts'

/** What runs them: a `Runner`, or a connection that is opened again when it failed. */
export interface StepRunner {
  run<C extends Call>(calls: readonly C[]): Ran<C>
  /** Between two transactions. Undefined if there is nothing to do, which costs nothing. */
  tend?(): Promise<void> | undefined
}

interface Waiting extends Call {
  /** Since when it waits for the lock, if it does: not for those before it, nor for a slow disk. */
  busySinceMs?: number
  readonly done: (outcome: Outcome) => void
}

export class StepQueue {
  readonly #runner: StepRunner
  readonly #clock: Clock
  readonly #onRan: (hints: readonly WakeUp[]) => void
  #calls: Waiting[] = []
  #isRunning = false
  #drained: Promise<void> = Promise.resolve()

  /** `onRan`: called after each transaction, when all its steps have their outcome. */
  constructor(runner: StepRunner, onRan: (hints: readonly WakeUp[]) => void, clock: Clock = systemClock) {
    this.#runner = runner
    this.#onRan = onRan
    this.#clock = clock
  }

  async call<Name extends StepName>(name: Name, ...args: StepArgs<Name>): Promise<StepAnswer<Name>> {
    const answer = await new Promise<unknown>((resolve, reject) => {
      this.push({ name, args }, (outcome) => {
        if ('value' in outcome) resolve(outcome.value)
        else reject(toError(outcome.error))
      })
    })
    return answer as StepAnswer<Name>
  }

  push({ name, args }: Call, done: (outcome: Outcome) => void): void {
    this.#calls.push({ name, args, done })
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
      await sleep(this.#clock, 0)
      const [group = []] = groupsOf(this.#calls)
      this.#calls = this.#calls.slice(group.length)
      const { outcomes, hints } = this.#run(group)
      const busy = outcomes.filter(([call, outcome]) => !this.#finished(call, outcome)).map(([call]) => call)
      this.#onRan(hints)
      // Behind the others, some of which only read.
      this.#calls.push(...busy)
      if (busy.length > 0) await pause(this.#clock)
      const tending = this.#runner.tend?.()
      if (tending !== undefined) await tending
    }
    this.#isRunning = false
  }

  /** Whatever goes wrong, every call is answered. */
  #run(group: readonly Waiting[]): Ran<Waiting> {
    try {
      return this.#runner.run(group)
    } catch (error) {
      return failed(group, error)
    }
  }

  /** False for a call that waits for the write lock and still has time. */
  #finished(call: Waiting, outcome: Outcome): boolean {
    if ('error' in outcome && isBusy(outcome.cause)) {
      const nowMs = this.#clock.monotonicMs()
      call.busySinceMs ??= nowMs
      if (nowMs < call.busySinceMs + LOCK_MS) return false
    }
    call.done(outcome)
    return true
  }
}
