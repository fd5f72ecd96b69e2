/** Notices of the database as wake-ups: they lower the marks of the lanes first, so that the claim they cause finds the job. */
import type { WorkerId } from '../../job/ids.ts'
import { brokenAnswer } from '../broken-answer.ts'
import { Listeners, type Listener } from '../listeners.ts'
import type { Executor, Listening } from './executor.ts'
import type { Lanes } from './lanes.ts'
import type { Statements } from './statements.ts'

/** Of a notice that is not about one lane. */
const EVERY_LANE = -1

export class WakeUps {
  readonly #executor: Executor
  readonly #statements: Statements
  readonly #lanes: Lanes
  readonly #listeners = new Listeners()
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

  async subscribe(listener: Listener): Promise<() => Promise<void>> {
    const remove = this.#listeners.add(listener)
    this.#listening ??= this.#listen()
    try {
      await this.#listening
    } catch (error) {
      remove()
      this.#listening = undefined
      throw error
    }
    return async () => {
      if (remove()) await this.#end()
    }
  }

  async #end(): Promise<void> {
    const listening = this.#listening
    this.#listening = undefined
    await (await listening)?.stop()
  }

  async #listen(): Promise<Listening> {
    const [row] = await this.#executor.query<{ channel: string }>(this.#statements.channel, [])
    if (row === undefined) throw brokenAnswer('postgres', 'the function channel returned no row')
    return this.#executor.listen(
      row.channel,
      (payload) => this.#hear(payload),
      () => this.#missed(),
    )
  }

  #hear(payload: string): void {
    const [kind = '', first = '', second = '', ...rest] = payload.split(' ')
    if (kind === 'ready') this.#ready(rest.join(' '), Number(first), Number(second))
    else if (kind === 'due') this.#listeners.tell({ type: 'due', inMs: Number(first) })
    else if (kind === 'cancel') this.#listeners.tell({ type: 'cancel', worker: first as WorkerId })
    else if (kind === 'paused')
      this.#listeners.tell({ type: 'paused', queue: payload.slice('paused '.length) })
  }

  #ready(queue: string, lane: number, rank: number): void {
    if (lane === EVERY_LANE) this.#lanes.sweepSoon(queue)
    else this.#lanes.lower(queue, lane, rank)
    this.#listeners.tell({ type: 'ready', queue })
  }

  /** Notices may have been lost. Listeners poll anyway. */
  #missed(): void {
    this.#lanes.sweepSoon()
  }
}
