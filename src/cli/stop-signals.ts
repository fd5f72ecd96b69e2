/**
 * SIGINT and SIGTERM: the first stops, the second aborts running jobs, the third exits at once.
 *
 * A Ctrl-C often arrives twice: from the terminal, which signals the whole process group, and again from npm, which
 * forwards it to its child. The same signal within a moment is therefore an echo and is ignored.
 */
import type { Clock } from '../std/clock.ts'
import { EXIT } from './exit.ts'
import type { Io, StopSignal } from './io.ts'

const ECHO_MS = 250
const SIGNALS: readonly StopSignal[] = ['SIGINT', 'SIGTERM']

export class StopSignals {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #asked: readonly (() => void)[]
  readonly #stopListening: () => void
  #last: { readonly signal: StopSignal; readonly atMs: number } | undefined
  #count = 0
  /** Resolves at the first signal. */
  readonly stop: Promise<void>
  /** Resolves at the second. */
  readonly hurry: Promise<void>

  constructor({ signals, clock, exit }: Pick<Io, 'signals' | 'clock' | 'exit'>) {
    this.#clock = clock
    const [stop, stopAsked] = promise()
    const [hurry, hurryAsked] = promise()
    this.stop = stop
    this.hurry = hurry
    this.#asked = [stopAsked, hurryAsked, () => exit(EXIT.interrupted)]
    const listeners = SIGNALS.map((signal) => [signal, () => this.#hear(signal)] as const)
    for (const [signal, listener] of listeners) signals.on(signal, listener)
    this.#stopListening = () => {
      for (const [signal, listener] of listeners) signals.off(signal, listener)
    }
  }

  get stopping(): boolean {
    return this.#count >= 1
  }

  get hurried(): boolean {
    return this.#count >= 2
  }

  /** Requests the next step, as another signal would. */
  ask(): void {
    this.#asked[Math.min(this.#count++, this.#asked.length - 1)]?.()
  }

  /** Restores the default handling of the signals. */
  close(): void {
    this.#stopListening()
  }

  #hear(signal: StopSignal): void {
    const atMs = this.#clock.monotonicMs()
    const last = this.#last
    this.#last = { signal, atMs }
    if (last?.signal !== signal || atMs - last.atMs >= ECHO_MS) this.ask()
  }
}

function promise(): [Promise<void>, () => void] {
  let resolve = (): void => undefined
  return [new Promise<void>((done) => (resolve = done)), () => resolve()]
}
