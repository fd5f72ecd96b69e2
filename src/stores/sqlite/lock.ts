/**
 * Waiting for the write lock. SQLite's own waiting blocks the thread, and grows to 100 ms, so that the last holder gets
 * the lock again and a process can starve. So a busy database is tried again after a short pause of random length.
 */
import { sleep, systemClock, type Clock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import type { Database } from './driver.ts'
import { isBusy } from './sqlite-errors.ts'

/**
 * How long a step waits for others that write: less than callers wait for an answer, so that they get the error that says
 * who holds the lock.
 */
export const LOCK_MS = 2_000
const LEAST_WAIT_MS = 0.3
const MOST_WAIT_MS = 4

export function pause(clock: Clock = systemClock): Promise<void> {
  return sleep(clock, LEAST_WAIT_MS + systemRandom.float() * (MOST_WAIT_MS - LEAST_WAIT_MS))
}

export async function beginImmediate(database: Database): Promise<void> {
  const untilMs = systemClock.monotonicMs() + LOCK_MS
  for (;;) {
    try {
      return database.exec('begin immediate')
    } catch (error) {
      if (!isBusy(error) || systemClock.monotonicMs() > untilMs) throw error
    }
    await pause()
  }
}

/** Some errors, a full disk among them, have ended the transaction already. */
export function rollBack(database: Database): void {
  try {
    database.exec('rollback')
  } catch {
    // There was none.
  }
}
