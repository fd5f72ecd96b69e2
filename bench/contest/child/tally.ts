/** The handler that all contenders run, and what it saw. */
import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../../report.ts'
import type { Payload, Waits, WorkResult } from '../protocol.ts'

// Monotonic, and the same for all processes of the machine, which `performance.now()` alone is not. The greatest of many
// looks: who loses the processor between the two clocks sees too little, on a busy machine by milliseconds.
const offsetMs = Math.max(...Array.from({ length: 100 }, lookAtBoth))

function lookAtBoth(): number {
  return Number(process.hrtime.bigint()) / 1e6 - performance.now()
}

export function nowMs(): number {
  return offsetMs + performance.now()
}

export class Tally {
  started = 0
  #beganMs = Number.NaN
  #lastMs = Number.NaN
  #handlerMs = 0
  #waitsMs: number[] = []
  #every = Infinity
  #onEach: () => void = () => undefined

  /** The worker is about to start. */
  begin(handlerMs: number): void {
    this.started = 0
    this.#beganMs = nowMs()
    this.#waitsMs = []
    this.#handlerMs = handlerMs
  }

  /** Calls back after so many jobs, over and over. */
  onEach(jobs: number, then: () => void): void {
    this.#every = jobs
    this.#onEach = then
  }

  readonly handler = ({ sentMs }: Payload): void | Promise<void> => {
    const now = nowMs()
    this.#lastMs = now
    this.started++
    if (sentMs !== undefined) this.#waitsMs.push(now - sentMs)
    if (this.started % this.#every === 0) this.#onEach()
    return this.#handlerMs === 0 ? undefined : sleep(this.#handlerMs)
  }

  takeWaits(): Waits {
    const waitsMs = this.#waitsMs
    this.#waitsMs = []
    return {
      samples: waitsMs.length,
      p50Ms: percentile(waitsMs, 50),
      p99Ms: percentile(waitsMs, 99),
    }
  }

  result(): WorkResult {
    return {
      started: this.started,
      beganMs: this.#beganMs,
      lastMs: this.#lastMs,
      waitsMs: this.#waitsMs,
    }
  }
}
