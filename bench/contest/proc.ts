/** CPU time of processes that are not ours, from Linux's /proc. See proc_pid_stat(5). */
import { readFileSync } from 'node:fs'

/** USER_HZ, which Linux has fixed for programs. */
export const TICK_MICROS = 10_000

/** In ticks. */
export interface Stat {
  readonly parent: number
  readonly own: number
  /** Of children that have ended. */
  readonly ended: number
}

/** Undefined where the process has just ended. */
export function statOf(pid: number | string): Stat | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // The name stands in parentheses and may have spaces; the state behind it is field 3.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const field = (number: number): number => Number(fields[number - 3])
  return { parent: field(4), own: field(14) + field(15), ended: field(16) + field(17) }
}
