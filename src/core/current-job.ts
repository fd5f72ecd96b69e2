/**
 * Which attempt the running code belongs to, through every await: so that jobs enqueued by a handler inherit its
 * correlation id, and a rejection that nobody handles is blamed on the job that caused it.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Inherited } from '../job/new-job.ts'

export interface CurrentJob {
  /** Undefined where the code runs for several jobs at once. */
  readonly inherited: Inherited | undefined
  /** Told of a promise that this attempt's code left rejected and unhandled. */
  unhandled(reason: unknown): void
}

export const currentJob = new AsyncLocalStorage<CurrentJob | undefined>()
