/**
 * Turns many concurrent calls into few: what is asked for in one turn, or while `maxInFlight` calls are already
 * under way, travels together. A lone call is sent at once, so batching costs no latency when there is nothing to
 * batch. Each caller gets its own answer, or its own error, or that of the call that carried it.
 *
 * A call has a deadline of its own; who had to wait for it first is turned away when its patience is over, though the
 * call may go on for others.
 */
import type { Clock } from './clock.ts'

interface Waiting<Item, Answer> {
  readonly item: Item
  readonly untilMs: number
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

export interface BatcherOptions<Item, Answer> {
  /** Must answer every item, in order; an Error rejects the call of its item alone. */
  readonly send: (items: readonly Item[]) => Promise<readonly (Answer | Error)[]>
  readonly maxItems: number
  readonly maxInFlight: number
  /** Read anew each time: a test may put another clock in its place. */
  readonly clock: () => Pick<Clock, 'monotonicMs' | 'after'>
  /** How long a caller waits, from its call on. */
  readonly patienceMs: number
  readonly late: (item: Item) => Error
}

const WORTH_SPLITTING = 16

export class Batcher<Item, Answer> {
  readonly #options: BatcherOptions<Item, Answer>
  #waiting: Waiting<Item, Answer>[] = []
  /** Under way, with callers in them that had to wait before; those who came first stand first. */
  readonly #belated = new Set<Waiting<Item, Answer>[]>()
  #cancelAlarm: (() => void) | undefined
  #inFlight = 0
  #flushPlanned = false

  constructor(options: BatcherOptions<Item, Answer>) {
    this.#options = options
  }

  add(item: Item): Promise<Answer> {
    const { clock, patienceMs, maxInFlight } = this.#options
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, untilMs: clock().monotonicMs() + patienceMs, resolve, reject })
      if (this.#inFlight >= maxInFlight) this.#setAlarm()
      else this.#planFlush()
    })
  }

  #planFlush(): void {
    if (this.#flushPlanned || this.#inFlight >= this.#options.maxInFlight) return
    this.#flushPlanned = true
    queueMicrotask(() => {
      this.#flushPlanned = false
      while (this.#waiting.length > 0 && this.#inFlight < this.#options.maxInFlight) void this.#flush()
    })
  }

  /**
   * Where nothing is under way and many wait, one call for each half: while the other side works on the first, this one
   * prepares the second, and from then on their callers take turns.
   */
  #batchSize(): number {
    const { maxItems, maxInFlight } = this.#options
    const waiting = this.#waiting.length
    if (this.#inFlight > 0 || waiting < WORTH_SPLITTING) return maxItems
    return Math.min(maxItems, Math.ceil(waiting / maxInFlight))
  }

  async #flush(): Promise<void> {
    const batch = this.#waiting.slice(0, this.#batchSize())
    this.#waiting = this.#waiting.slice(batch.length)
    this.#inFlight++
    const belated = [...batch]
    if (this.#cancelAlarm !== undefined) this.#belated.add(belated)
    try {
      const answers = await this.#options.send(batch.map((waiting) => waiting.item))
      batch.forEach((waiting, index) => {
        const answer = answers[index]
        if (answer instanceof Error) waiting.reject(answer)
        else waiting.resolve(answer as Answer)
      })
    } catch (error) {
      for (const waiting of batch) waiting.reject(error)
    } finally {
      this.#inFlight--
      this.#belated.delete(belated)
      if (this.#waiting.length > 0) this.#planFlush()
      else if (this.#belated.size === 0) this.#endAlarm()
    }
  }

  /** One for all; there is none while nobody has to wait. */
  #setAlarm(): void {
    if (this.#cancelAlarm !== undefined) return
    const clock = this.#options.clock()
    const next = [this.#waiting, ...this.#belated].flatMap(([first]) => first?.untilMs ?? [])
    if (next.length === 0) return
    this.#cancelAlarm = clock.after(Math.min(...next) - clock.monotonicMs(), () => {
      this.#cancelAlarm = undefined
      for (const list of [this.#waiting, ...this.#belated]) this.#turnAway(list)
      this.#setAlarm()
    })
  }

  #endAlarm(): void {
    this.#cancelAlarm?.()
    this.#cancelAlarm = undefined
  }

  #turnAway(list: Waiting<Item, Answer>[]): void {
    const { clock, late } = this.#options
    const nowMs = clock().monotonicMs()
    const patient = list.findIndex(({ untilMs }) => untilMs > nowMs)
    for (const waiting of list.splice(0, patient === -1 ? list.length : patient))
      waiting.reject(late(waiting.item))
  }
}
