/** The part of an attempt that a batch needs. */
import type { ObservedAttempt } from '../core/instrumentation.ts'
import type { AbortWhy } from '../errors.ts'
import type { Inherited } from '../job/new-job.ts'
import type { LazyAbort } from '../std/abort.ts'

export interface Batched extends ObservedAttempt {
  readonly worker: string
  readonly abort: LazyAbort
  /** Why its signal was aborted; undefined if it was not. */
  readonly abortedFor: AbortWhy | undefined
  readonly inherited: Inherited
  /** The call that it is in; null while it waits for the others, undefined before. */
  batchCall: { stopped(reason: Error): void } | null | undefined
}
