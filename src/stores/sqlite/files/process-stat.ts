/** What Linux says of a process in /proc/<pid>/stat. */
import { readFileSync } from 'node:fs'

export interface ProcessStat {
  readonly name: string
  /** R, S, D: alive. T, t: stopped by a signal or a debugger. Z, X: dead, but not collected by its parent yet. */
  readonly state: string
  /** In ticks since the machine started: tells a process from a later one with the same pid. */
  readonly startTime: number
}

/** Null if the text is something else. */
export function parseProcessStat(text: string): ProcessStat | null {
  // The name, in brackets, may have spaces and brackets in it, so the other fields are counted from the last bracket.
  const nameEnd = text.lastIndexOf(')')
  const name = text.slice(text.indexOf('(') + 1, nameEnd)
  const [state = '', ...rest] = text.slice(nameEnd + 2).split(' ')
  const startTime = rest[18] ?? ''
  if (nameEnd < 0 || !/^[A-Za-z]$/.test(state) || !/^\d+$/.test(startTime)) return null
  return { name, state, startTime: Number(startTime) }
}

/** 'missing' may also mean that this process is not allowed to see the other one. */
export function readProcessStat(pid: number): ProcessStat | 'missing' | 'unreadable' {
  try {
    return parseProcessStat(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? 'unreadable'
  } catch (error) {
    const { code } = error as { readonly code?: unknown }
    // ESRCH: it ended while its file was read.
    return code === 'ENOENT' || code === 'ESRCH' ? 'missing' : 'unreadable'
  }
}
