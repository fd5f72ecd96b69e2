/** Notices of the database as wake-ups: they lower the marks of the lanes first, so that the claim they cause finds the job. */
import type { WorkerId } from '../../job/ids.ts'
import type { WakeUp } from '../store.ts'
import type { Executor, Listening } from './executor.ts'
import type { Lanes } from './lanes.ts'
import type { Statements } from './statements.ts'

/** Of a notice that is not about one lane. */
const EVERY_LANE = -1

export class WakeUps {
  readonly #executor: Executor
  readonly #statements: Statements
  readonly #lanes: Lanes
  readonly #listeners = new Set<(hint: WakeUp) => void>()
  #listening: Promise<Listening> | undefined

  constructor(executor: Executor, statements: Statements, lanes: Lanes) {
    this.#executor = executor
    this.#statements = statements
    this.#lanes = lanes
  }

  /** Whether there are listeners. They poll as well, so it does not matter here whether notices really arrive. */
  get isSubscribed(): boolean {
    return this.#listening !== undefined
  }

  async subscribe(listener: (hint: WakeUp) => void): Promise<() => Promise<void>> {
    // Wrapped, so that a function subscribed twice is two subscriptions.
    const mine = (hint: WakeUp): void => listener(hint)
    this.#listeners.add(mine)
    this.#listening ??= this.#listen()
    try {
      await this.#listening
    } catch (error) {
      this.#listeners.delete(mine)
      this.#listening = undefined
      throw error
    }
    return () => this.#leave(mine)
  }

  async #leave(listener: (hint: WakeUp) => void): Promise<void> {
    this.#listeners.delete(listener)
    if (this.#listeners.size > 0) return
    const listening = this.#listening
    this.#listening = undefined
    await (await listening)?.stop()
  }

  async #listen(): Promise<Listening> {
    const [row] = await this.#executor.query<{ channel: string }>(this.#statements.channel, [])
    if (row === undefined) throw new Error('The function channel answered without a row.')
    return this.#executor.listen(
      row.channel,
      (payload) => this.#hear(payload),
      () => this.#missed(),
    )
  }

  #hear(payload: string): void {
    const [kind = '', first = '', second = '', ...rest] = payload.split(' ')
    if (kind === 'ready') this.#ready(rest.join(' '), Number(first), Number(second))
    else if (kind === 'due') this.#tell({ type: 'due', inMs: Number(first) })
    else if (kind === 'cancel') this.#tell({ type: 'cancel', worker: first as WorkerId })
    else if (kind === 'paused') this.#tell({ type: 'paused', queue: payload.slice('paused '.length) })
  }

  #ready(queue: string, lane: number, rank: number): void {
    if (lane === EVERY_LANE) this.#lanes.sweepSoon(queue)
    else this.#lanes.lower(queue, lane, rank)
    this.#tell({ type: 'ready', queue })
  }

  /** Notices may have been lost. Listeners poll anyway. */
  #missed(): void {
    this.#lanes.sweepSoon()
  }

  #tell(hint: WakeUp): void {
    for (const listener of this.#listeners) {
      try {
        listener(hint)
      } catch {
        // A hint is best effort, and what a listener throws is its own affair.
      }
    }
  }
}
