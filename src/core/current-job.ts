/**
 * The attempt that the running code belongs to, across awaits: jobs enqueued by a handler inherit its correlation id,
 * and an unhandled rejection is attributed to its job.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Inherited } from '../job/new-job.ts'

export interface CurrentJob {
  /** Undefined if the code runs for several jobs at once. */
  readonly inherited: Inherited | undefined
  /** Called with an unhandled rejection of this attempt's code. */
  unhandled(reason: unknown): void
}

export const currentJob = new AsyncLocalStorage<CurrentJob | undefined>()
