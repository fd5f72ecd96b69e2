/** Errors of the worker itself: neither an outage, which the store's client tells of, nor a failure of a job. */
import type { Core } from '../core/core.ts'
import { isStoreFailure } from '../errors.ts'
import { toError } from '../std/text.ts'

/** `doing` completes "could not …". */
export function tellWorkerError({ events }: Core, worker: string, doing: string, error: unknown): void {
  if (isStoreFailure(error)) return
  events.emit('worker.error', { worker, doing, error: toError(error) })
}
