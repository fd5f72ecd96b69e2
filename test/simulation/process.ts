/** A simulated process: its own skewed clock, and whether it runs, is frozen (SIGSTOP, a blocked loop) or dead (kill -9). */
import type { Clock } from '../../src/std/clock.ts'
import type { Host, World } from './world.ts'

/** The wall clock of the world begins here. */
export const EPOCH_MS = Date.UTC(2030, 0, 1)

export interface Skew {
  /** How far its wall clock is off. */
  readonly offsetMs: number
  /** How fast its time goes: 1 is right. */
  readonly rate: number
}

export class SimulatedProcess implements Host {
  readonly name: string
  readonly clock: Clock
  readonly #world: World
  #state: Host['state'] = 'alive'
  #postponed: (() => void)[] = []

  constructor(world: World, name: string, skew: Skew) {
    this.name = name
    this.#world = world
    this.clock = {
      now: () => EPOCH_MS + skew.offsetMs + world.nowMs * skew.rate,
      monotonicMs: () => world.nowMs * skew.rate,
      after: (ms, fn) => this.#timer(Math.max(0, ms) / skew.rate, fn),
    }
  }

  #timer(inMs: number, fn: () => void): () => void {
    // Called off also where it has fallen due while the process was frozen, as a real timer is.
    let off = false
    const callOff = this.#world.plan(inMs, this, () => {
      if (!off) fn()
    })
    return () => {
      off = true
      callOff()
    }
  }

  get state(): Host['state'] {
    return this.#state
  }

  postpone(happen: () => void): void {
    this.#postponed.push(happen)
  }

  /** Stops in the middle of whatever it does; what reaches it meanwhile waits. */
  freeze(forMs: number): void {
    if (this.#state !== 'alive') return
    this.#state = 'frozen'
    this.#world.plan(forMs, null, () => this.#thaw())
  }

  #thaw(): void {
    if (this.#state !== 'frozen') return
    this.#state = 'alive'
    // One by one and in an order of chance: a loop that wakes up finds timers and sockets ready all at once.
    for (const happen of this.#postponed.splice(0)) this.#world.plan(0, this, happen)
  }

  kill(): void {
    this.#state = 'dead'
    this.#postponed = []
  }
}
