/**
 * Refuses values that not every store can hold, before anything of the call is written. SQLite cuts a text at a NUL,
 * drivers replace half a character, and a number above 2^53 reads back as another one: such a row would not be what was
 * written.
 */
import { HoldfastError } from '../errors.ts'
import { LONGEST_HEAD_START_MS } from '../job/rank.ts'
import type { NewJob } from '../job/record.ts'
import { findFlaw } from '../std/text.ts'
import { badFlush, MAX_BATCH, type Flush } from './flush.ts'
import type { JobChange } from './store.ts'

export function checkText(what: string, text: string | null): void {
  if (text === null || (!text.includes('\0') && text.isWellFormed())) return
  throw new HoldfastError('HF_STORE_REFUSED', `${what} contains ${findFlaw(text)}.`, {
    hint: 'Remove that character: not every store can hold it.',
  })
}

/** The range of a Date: added to the time of any store, it stays below 2^53. */
const LONGEST_MS = 8.64e15

export function checkDuration(what: string, ms: number, longestMs = LONGEST_MS): void {
  if (Math.abs(ms) <= longestMs) return
  throw new HoldfastError('HF_STORE_REFUSED', `${what} is ${ms} ms, which is too long.`, {
    hint: `Use at most ${longestMs} ms.`,
  })
}

/** A greater number would come back as another one, or not at all. */
export function checkCount(what: string, count: number | null): void {
  if (count === null || Math.abs(count) <= Number.MAX_SAFE_INTEGER) return
  throw new HoldfastError('HF_STORE_REFUSED', `${what} cannot be ${count}.`, {
    hint: 'Use a number below 2^53.',
  })
}

/** PostgreSQL looks for ranks from -1e15 on, and rank is the due time minus the head start. */
function checkHeadStart(ms: number): void {
  checkDuration('The head start of a job', ms, LONGEST_HEAD_START_MS)
}

/** Call it before anything is written: a flush happens as a whole or not at all. */
export function checkFlush(kind: string, { jobs }: Pick<Flush, 'jobs'>): void {
  if (jobs.length > MAX_BATCH)
    throw badFlush(kind, `a flush of ${jobs.length} jobs; at most ${MAX_BATCH} are allowed`)
  checkJobs(jobs)
}

/** Less than 0.1 µs a job. Payloads are left out: they were checked when they were made, and a look takes up to 3 µs. */
export function checkJobs(jobs: readonly NewJob[]): void {
  let checkedName: string | undefined
  let checkedQueue: string | undefined
  for (const { name, queue, priority, headStartMs, maxAttempts, maxCrashes, unique } of jobs) {
    if (name !== checkedName) checkText('The name of a job', (checkedName = name))
    if (queue !== checkedQueue) checkText('The name of a queue', (checkedQueue = queue))
    checkHeadStart(headStartMs)
    checkCount('The priority of a job', priority)
    checkCount('The maximum of attempts', maxAttempts)
    checkCount('The maximum of crashes', maxCrashes)
    if (unique === null) continue
    checkText('A unique key', unique.key)
    if ('forMs' in unique.hold) checkDuration('The time of a unique key', unique.hold.forMs)
  }
}

export function checkChange(change: JobChange): void {
  switch (change.type) {
    case 'cancel':
      return checkText('The reason of a cancel', change.reason)
    case 'edit':
      if (change.rank !== undefined) {
        checkHeadStart(change.rank.headStartMs)
        checkCount('The priority of a job', change.rank.priority)
      }
      return checkText('A payload', change.payload ?? null)
    case 'replay':
      return checkText('A payload', change.payload ?? null)
    case 'discard':
      return
  }
}

export function checkSchedule(
  id: string,
  schedule: { readonly spec: string; readonly nextTick: number | null } | null,
): void {
  checkText('The id of a schedule', id)
  checkText('A schedule', schedule?.spec ?? null)
  checkCount('The next tick of a schedule', schedule?.nextTick ?? null)
}

export function checkNote(kind: string, id: string, text: string | null, ttlMs: number | null): void {
  checkText('The kind of a note', kind)
  checkText('The id of a note', id)
  checkText('A note', text)
  if (ttlMs !== null) checkDuration('The time of a note', ttlMs)
}
