/** No wait without an end: what is not answered in time is an error of the caller's making. */
import type { Clock } from './clock.ts'

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
