/** A clock that another thread can set: tests move the time of the store's thread. */
import { systemClock, type Clock } from '../../../std/clock.ts'

const MODE = 0
const MS = 1
const RUNS = 0n
const STANDS = 1n

export class SharedClock implements Pick<Clock, 'now' | 'monotonicMs'> {
  readonly buffer: SharedArrayBuffer
  readonly #cells: BigInt64Array

  constructor(buffer = new SharedArrayBuffer(16)) {
    this.buffer = buffer
    this.#cells = new BigInt64Array(buffer)
  }

  /** Stands still from now on, but for `advance`. */
  freezeAt(ms: number): void {
    Atomics.store(this.#cells, MS, BigInt(ms))
    Atomics.store(this.#cells, MODE, STANDS)
  }

  advance(ms: number): void {
    Atomics.add(this.#cells, MS, BigInt(Math.round(ms)))
  }

  now(): number {
    return this.#read(systemClock.now())
  }

  /** Time that a test lets pass is no jump. */
  monotonicMs(): number {
    return this.#read(systemClock.monotonicMs())
  }

  #read(ownMs: number): number {
    const ms = Number(Atomics.load(this.#cells, MS))
    return Atomics.load(this.#cells, MODE) === RUNS ? ownMs + ms : ms
  }
}
