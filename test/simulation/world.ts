/**
 * A world in virtual time, driven by one seeded scheduler: everything that happens (a timer, a message that arrives) is
 * an event in one queue, and after each event all promise work that it set off has run before the next begins. The same
 * seed gives the same events in the same order.
 */
import { seededRandom, type Random } from '../../src/std/random.ts'
import { SortedList } from '../../src/std/sorted-list.ts'
import { letPromisesRun } from '../../src/std/virtual-clock.ts'

interface PlannedEvent {
  readonly atMs: number
  /** Drawn by chance, so that what falls due at one moment happens in an order that differs from seed to seed. */
  readonly tie: number
  readonly order: number
  readonly host: Host | null
  readonly happen: () => void
}

/** Where an event takes place: a process that may be frozen or dead when its time comes. */
export interface Host {
  readonly state: 'alive' | 'frozen' | 'dead'
  /** Keeps what happens to a frozen process, until it thaws. */
  postpone(happen: () => void): void
}

export class World {
  readonly random: Random
  #nowMs = 0
  #order = 0
  #happened = 0
  readonly #planned = new SortedList<PlannedEvent>(
    (a, b) => a.atMs - b.atMs || a.tie - b.tie || a.order - b.order,
  )

  constructor(seed: number) {
    this.random = seededRandom(seed)
  }

  /** Milliseconds since the world began. */
  get nowMs(): number {
    return this.#nowMs
  }

  get happened(): number {
    return this.#happened
  }

  /** Plans an event; returns how to call it off. */
  plan(inMs: number, host: Host | null, happen: () => void): () => void {
    const event = { atMs: this.#nowMs + inMs, tie: this.random.uint32(), order: this.#order++, host, happen }
    this.#planned.add(event)
    return () => void this.#planned.delete(event)
  }

  /** Lets everything happen up to a time. */
  async runUntil(untilMs: number): Promise<void> {
    await letPromisesRun()
    for (;;) {
      const next = this.#planned.first()
      if (next === undefined || next.atMs > untilMs) break
      this.#planned.takeFirst()
      this.#nowMs = next.atMs
      if (this.#takePlace(next)) await this.#promisesHaveRun()
    }
    this.#nowMs = untilMs
  }

  /**
   * Node runs what stands in its tick queue only when no promise reaction is left, and that is four times cheaper than a
   * turn of the loop, which is taken now and then so that the real process can breathe.
   */
  #promisesHaveRun(): Promise<void> {
    if (this.#happened % 1_000 === 0) return letPromisesRun()
    return new Promise((resolve) => process.nextTick(resolve))
  }

  /** False where the process it was meant for could not notice. */
  #takePlace({ host, happen }: PlannedEvent): boolean {
    if (host?.state === 'dead') return false
    if (host?.state === 'frozen') {
      host.postpone(happen)
      return false
    }
    this.#happened++
    happen()
    return true
  }
}

/** Uniform between two bounds. */
export function between(random: Random, low: number, high: number): number {
  return low + random.float() * (high - low)
}

export function chance(random: Random, probability: number): boolean {
  return random.float() < probability
}

export function pick<T>(random: Random, choices: readonly T[]): T {
  const choice = choices[Math.floor(random.float() * choices.length)]
  if (choice === undefined) throw new Error('nothing to pick from')
  return choice
}
