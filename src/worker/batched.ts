/** What a batch needs of an attempt that is in it. */
import type { AbortWhy } from '../errors.ts'
import type { Inherited } from '../job/new-job.ts'
import type { LazyAbort } from '../std/abort.ts'

export interface Batched {
  readonly abort: LazyAbort
  /** Why it was told to end, if it was. */
  readonly abortedFor: AbortWhy | undefined
  readonly inherited: Inherited
  unhandled(reason: unknown): void
  /** The call that it is in; null while it waits for its company, undefined before. */
  batchCall: { stopped(reason: Error): void } | null | undefined
}
