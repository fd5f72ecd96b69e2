/** The parts of the process that a command uses; tests replace them. */
import type { Clock } from '../std/clock.ts'
import type { Random } from '../std/random.ts'

export interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  /** Respects NO_COLOR, FORCE_COLOR and dumb terminals. */
  hasColors?(): boolean
  on?(event: 'error' | 'resize', listener: () => void): unknown
  off?(event: 'error' | 'resize', listener: () => void): unknown
}

export type StopSignal = 'SIGINT' | 'SIGTERM'

export interface SignalSource {
  on(signal: StopSignal, listener: () => void): unknown
  off(signal: StopSignal, listener: () => void): unknown
}

export interface Io {
  /** Data. */
  readonly stdout: Output
  /** Logs, errors and hints. */
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly signals: SignalSource
  readonly clock: Clock
  readonly random: Random
  /** Ends the process immediately. */
  exit(code: number): void
}

export function hasColours(output: Output): boolean {
  return output.isTTY === true && output.hasColors?.() === true
}
