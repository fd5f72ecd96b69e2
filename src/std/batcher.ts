/**
 * Turns many concurrent calls into few: calls of one turn of the event loop, or made while `maxInFlight` batches are in
 * flight, are sent together. A single call is sent at once, so batching adds no latency if there is nothing to batch.
 * Each caller gets its own answer, its own error, or the error of its batch.
 *
 * A caller's deadline counts from its call. A batch has the deadline of its newest caller, and `send` observes it. A
 * caller that had to wait before its batch was sent is rejected at its own, earlier deadline; one timer serves all of
 * these.
 */
import type { Clock } from './clock.ts'
import type { Deadline } from './deadline.ts'

interface Caller<Item, Answer> {
  readonly item: Item
  readonly untilMs: number
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** What is under way together. */
interface Batch<Item, Answer> {
  /** In the order of the calls. */
  readonly callers: readonly Caller<Item, Answer>[]
  readonly deadline: Deadline
  /** How many callers, counted from the first, were rejected. */
  turnedAway: number
}

export interface BatcherOptions<Item, Answer> {
  /** Answers every item, in order, by the deadline; an Error rejects the call of its item alone. */
  readonly send: (items: readonly Item[], deadline: Deadline) => Promise<readonly (Answer | Error)[]>
  readonly maxItems: number
  readonly maxInFlight: number
  /** Read on each use, because a test may replace the clock. */
  readonly clock: () => Pick<Clock, 'monotonicMs' | 'after'>
  /** How long a caller waits, counted from its call. */
  readonly timeoutMs: number
  /** `lastError`: the last error of the batch with the item, or of one that it waits for. */
  readonly late: (item: Item, lastError: Error | undefined) => Error
}

const WORTH_SPLITTING = 16

export class Batcher<Item, Answer> {
  readonly #options: BatcherOptions<Item, Answer>
  readonly #underWay = new Set<Batch<Item, Answer>>()
  #waiting: Caller<Item, Answer>[] = []
  #cancelAlarm: (() => void) | undefined
  #sendPlanned = false
  /** Error of the batch that just failed, for the callers that waited for it: they may have no time left to try. */
  #lastError: Error | undefined

  constructor(options: BatcherOptions<Item, Answer>) {
    this.#options = options
  }

  add(item: Item): Promise<Answer> {
    const { clock, timeoutMs } = this.#options
    const untilMs = clock().monotonicMs() + timeoutMs
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, untilMs, resolve, reject })
      if (this.#isFull) this.#setAlarm()
      else this.#planSend()
    })
  }

  get #isFull(): boolean {
    return this.#underWay.size >= this.#options.maxInFlight
  }

  #planSend(): void {
    if (this.#sendPlanned || this.#isFull) return
    this.#sendPlanned = true
    queueMicrotask(() => {
      this.#sendPlanned = false
      while (this.#waiting.length > 0 && !this.#isFull) void this.#sendNext()
    })
  }

  /**
   * If nothing is under way and many wait, one batch for each half: while the other side works on the first, this one
   * prepares the second, and from then on their callers take turns.
   */
  #batchSize(): number {
    const { maxItems, maxInFlight } = this.#options
    const waiting = this.#waiting.length
    if (this.#underWay.size > 0 || waiting < WORTH_SPLITTING) return maxItems
    return Math.min(maxItems, Math.ceil(waiting / maxInFlight))
  }

  #takeNext(): Batch<Item, Answer> {
    const callers = this.#waiting
    this.#waiting = callers.splice(this.#batchSize())
    const atMs = (callers.at(-1) as Caller<Item, Answer>).untilMs
    const deadline: Deadline = { atMs, timeoutMs: this.#options.timeoutMs }
    if (this.#lastError !== undefined) deadline.lastError = this.#lastError
    this.#lastError = undefined
    return { callers, deadline, turnedAway: 0 }
  }

  async #sendNext(): Promise<void> {
    const batch = this.#takeNext()
    const { callers, deadline } = batch
    this.#underWay.add(batch)
    let failed = false
    try {
      const items = callers.map((caller) => caller.item)
      const answers = await this.#options.send(items, deadline)
      callers.forEach((caller, index) => {
        const answer = answers[index]
        if (answer instanceof Error) caller.reject(answer)
        else caller.resolve(answer as Answer)
      })
      failed = answers.every((answer) => answer instanceof Error)
    } catch (error) {
      failed = true
      for (const caller of callers) caller.reject(error)
    } finally {
      this.#underWay.delete(batch)
      if (this.#waiting.length > 0) {
        this.#lastError = failed ? deadline.lastError : undefined
        this.#planSend()
      } else if (this.#cancelAlarm !== undefined && ![...this.#underWay].some(hasWaited)) this.#endAlarm()
    }
  }

  /** Not set while no caller has to wait: `send` observes the deadline of its batch. */
  #setAlarm(): void {
    if (this.#cancelAlarm !== undefined) return
    const firsts = [...this.#underWay].filter(hasWaited).map(({ callers, turnedAway }) => callers[turnedAway])
    const next = [this.#waiting[0], ...firsts].flatMap((caller) => caller?.untilMs ?? [])
    if (next.length === 0) return
    const clock = this.#options.clock()
    this.#cancelAlarm = clock.after(Math.min(...next) - clock.monotonicMs(), () => {
      this.#cancelAlarm = undefined
      this.#turnAwayLate(clock.monotonicMs())
      this.#setAlarm()
    })
  }

  #endAlarm(): void {
    this.#cancelAlarm?.()
    this.#cancelAlarm = undefined
  }

  #turnAwayLate(nowMs: number): void {
    const { late } = this.#options
    for (const batch of this.#underWay) {
      const { callers, deadline } = batch
      const end = callers.length - countPatient(callers, nowMs)
      for (const caller of callers.slice(batch.turnedAway, end))
        caller.reject(late(caller.item, deadline.lastError))
      batch.turnedAway = end
    }
    const lastError = [...this.#underWay].map(({ deadline }) => deadline.lastError).find(Boolean)
    const end = this.#waiting.length - countPatient(this.#waiting, nowMs)
    for (const caller of this.#waiting.splice(0, end)) caller.reject(late(caller.item, lastError))
  }
}

/** Whether a caller's deadline comes before that of the batch. */
function hasWaited({ callers, deadline, turnedAway }: Batch<unknown, never>): boolean {
  const first = callers[turnedAway]
  return first !== undefined && (turnedAway > 0 || first.untilMs < deadline.atMs)
}

/** How many callers, at the end of the list, have time left. */
function countPatient(callers: readonly { readonly untilMs: number }[], nowMs: number): number {
  const first = callers.findIndex(({ untilMs }) => untilMs > nowMs)
  return first === -1 ? 0 : callers.length - first
}
