/**
 * A world in virtual time, driven by one seeded scheduler: everything that happens (a timer, a message that arrives) is
 * an event in one queue, and after each event all promise work that it set off has run before the next begins. The same
 * seed gives the same events in the same order.
 */
import { seededRandom, type Random } from '../../src/std/random.ts'
import { letPromisesRun } from '../../src/std/virtual-clock.ts'
import { Heap } from '../checker/heap.ts'

/** How many events make one turn of the real event loop. */
const BATCH = 1_000

interface PlannedEvent {
  readonly atMs: number
  /** Drawn by chance, so that what falls due at one moment happens in an order that differs from seed to seed. */
  readonly tie: number
  readonly order: number
  readonly host: Host | null
  /** Null once it is called off: it stays in the queue until its time comes, and then nothing happens. */
  happen: (() => void) | null
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
  #failure: Error | undefined
  readonly #planned = new Heap<PlannedEvent>(isBefore)

  constructor(seed: number) {
    this.random = seededRandom(seed)
  }

  /** Milliseconds since the world began. */
  get nowMs(): number {
    return this.#nowMs
  }

  /** How many events took place: timers that fired, messages that arrived. */
  get happened(): number {
    return this.#happened
  }

  /** Plans an event; returns how to call it off. */
  plan(inMs: number, host: Host | null, happen: () => void): () => void {
    const event: PlannedEvent = {
      atMs: this.#nowMs + inMs,
      tie: this.random.uint32(),
      order: this.#order++,
      host,
      happen,
    }
    this.#planned.push(event)
    return () => {
      event.happen = null
    }
  }

  /** Lets everything happen up to a time. */
  async runUntil(untilMs: number): Promise<void> {
    await letPromisesRun()
    let more = true
    while (more) {
      // Node runs all promise reactions between two immediates, which is the cheapest way to have them run; a batch of
      // them is one turn of the loop, after which the real process can breathe.
      const step = (): void => this.#tryStep(untilMs)
      for (let count = 0; count < BATCH; count++) setImmediate(step)
      await letPromisesRun()
      if (this.#failure !== undefined) throw this.#failure
      more = (this.#planned.top()?.atMs ?? Infinity) <= untilMs
    }
    this.#nowMs = untilMs
  }

  /** An immediate has nobody to throw to. */
  #tryStep(untilMs: number): void {
    if (this.#failure !== undefined) return
    try {
      this.#step(untilMs)
    } catch (error) {
      this.#failure = error as Error
    }
  }

  /** The next event that somebody notices, if there is one up to that time. */
  #step(untilMs: number): void {
    for (;;) {
      const next = this.#planned.top()
      if (next === undefined || next.atMs > untilMs) return
      this.#planned.pop()
      if (next.happen === null) continue
      this.#nowMs = next.atMs
      if (this.#takePlace(next.host, next.happen)) return
    }
  }

  /** False where the process it was meant for could not notice. */
  #takePlace(host: Host | null, happen: () => void): boolean {
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

function isBefore(a: PlannedEvent, b: PlannedEvent): boolean {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs
  return a.tie === b.tie ? a.order < b.order : a.tie < b.tie
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
