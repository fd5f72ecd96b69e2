/** Chance with a seed (mulberry32): the same seed, the same history. */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  float(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  below(limit: number): number {
    return Math.floor(this.float() * limit)
  }

  happens(probability: number): boolean {
    return this.float() < probability
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T
  }
}
