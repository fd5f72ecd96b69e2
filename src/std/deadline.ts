/** Deadlines: no wait without an end. */
import type { Clock } from './clock.ts'

/** When a caller stops waiting for one operation, however many steps and tries that takes. */
export interface Deadline {
  /** By the monotonic clock. */
  readonly atMs: number
  /** How long after the caller asked that is, for messages. */
  readonly timeoutMs: number
  /** What the last failed try said, for the error that the caller gets at the deadline. */
  lastError?: Error
}

/** Rejects with `late()` if the work takes longer than `ms`. */
export function withDeadline<T>(clock: Clock, ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => reject(late()))
    work.then(
      (value) => {
        cancel()
        resolve(value)
      },
      (error: unknown) => {
        cancel()
        reject(error)
      },
    )
  })
}
