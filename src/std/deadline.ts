/** Deadlines, so that no wait is endless. */
import type { Clock } from './clock.ts'

/** When a caller stops waiting for an operation, however many steps and tries it takes. */
export interface Deadline {
  /** By the monotonic clock. */
  readonly atMs: number
  /** Duration from the call to the deadline, for messages. */
  readonly timeoutMs: number
  /** The error of the last failed try, for the caller's error at the deadline. */
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
