import { EventEmitter } from 'node:events'
import type { Io, Output } from '../../src/cli/io.ts'
import { seededRandom } from '../../src/std/random.ts'
import { VirtualClock } from '../../src/std/virtual-clock.ts'

export interface FakeIo extends Io {
  readonly clock: VirtualClock
  readonly signals: EventEmitter
  readonly out: () => string
  readonly err: () => string
  /** The codes that somebody wanted the process to end with at once. */
  readonly exits: number[]
}

/** What a command touches of the process, without a process: keeps what is written, and a clock that stands still. */
export function fakeIo(
  options: { cwd?: string; env?: Record<string, string>; tty?: Partial<Output> } = {},
): FakeIo {
  let out = ''
  let err = ''
  const exits: number[] = []
  return {
    stdout: { write: (text) => (out += text), ...options.tty },
    stderr: { write: (text) => (err += text), ...options.tty },
    env: options.env ?? {},
    cwd: options.cwd ?? process.cwd(),
    signals: new EventEmitter(),
    clock: new VirtualClock(),
    random: seededRandom(1),
    exit: (code) => void exits.push(code),
    out: () => out,
    err: () => err,
    exits,
  }
}
