/**
 * Turns many concurrent calls into few: what is asked for in one turn, or while `maxInFlight` calls are already
 * under way, travels together. A lone call is sent at once, so batching costs no latency when there is nothing to
 * batch. Each caller gets its own answer, or the error of the call that carried it.
 */
interface Waiting<Item, Answer> {
  readonly item: Item
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

export interface BatcherOptions<Item, Answer> {
  /** Must answer every item, in order. */
  readonly send: (items: readonly Item[]) => Promise<readonly Answer[]>
  readonly maxItems: number
  readonly maxInFlight: number
}

export class Batcher<Item, Answer> {
  readonly #options: BatcherOptions<Item, Answer>
  #waiting: Waiting<Item, Answer>[] = []
  #inFlight = 0
  #flushPlanned = false

  constructor(options: BatcherOptions<Item, Answer>) {
    this.#options = options
  }

  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      this.#planFlush()
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

  async #flush(): Promise<void> {
    const batch = this.#waiting.slice(0, this.#options.maxItems)
    this.#waiting = this.#waiting.slice(batch.length)
    this.#inFlight++
    try {
      const answers = await this.#options.send(batch.map((waiting) => waiting.item))
      batch.forEach((waiting, index) => waiting.resolve(answers[index] as Answer))
    } catch (error) {
      for (const waiting of batch) waiting.reject(error)
    } finally {
      this.#inFlight--
      if (this.#waiting.length > 0) this.#planFlush()
    }
  }
}
