/**
 * A job's place in its queue: due time minus the head start of its priority. All waiting jobs age at the same rate, so
 * a static number gives linear aging: two waiting jobs never change order, and no job is ranked again.
 */
import type { Duration } from '../std/duration.ts'
import { readDuration } from './duration.ts'
import { refused } from './options.ts'

export const PRIORITY_LEVELS = { urgent: 9, high: 7, normal: 5, low: 3, background: 1 } as const

/** A head start in time: each level is worth the queue's `aging` (a minute by default), so no job starves. */
export type Priority = keyof typeof PRIORITY_LEVELS | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9

/** Head start of one level; 'strict' makes it ten years, so a higher priority always goes first. */
export type Aging = Duration | 'strict'

export const DEFAULT_AGING_MS = 60_000
const STRICT_AGING_MS = 10 * 365 * 86_400_000
const MAX_AGING_MS = 1e14
/** 28,000 years: every store can order jobs by it, see `stores/write-check.ts`. */
export const LONGEST_HEAD_START_MS = 9 * MAX_AGING_MS

export function readPriority(value: unknown, path: string): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 9) return value
  if (typeof value === 'string' && Object.hasOwn(PRIORITY_LEVELS, value)) {
    return PRIORITY_LEVELS[value as keyof typeof PRIORITY_LEVELS]
  }
  throw refused(path, value, `${Object.keys(PRIORITY_LEVELS).join(', ')}, or a whole number from 0 to 9`)
}

export function readAgingMs(value: unknown, path: string): number {
  if (value === 'strict') return STRICT_AGING_MS
  const ms = readDuration(value, path)
  if (ms <= MAX_AGING_MS) return ms
  throw refused(
    path,
    value,
    "at most 1e14 ms, or 'strict'",
    "Use 'strict' if a higher priority should always go first.",
  )
}

export function headStartMs(priority: number, agingMs: number): number {
  return priority * agingMs
}

/** Lower goes first; equal ranks are ordered by id, that is by creation time. */
export function rankOf(dueMs: number, headStart: number): number {
  return dueMs - headStart
}
