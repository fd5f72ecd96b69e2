/** The jobs that an enqueue writes in one step, and its answer. */
import type { FlushId, JobId } from '../job/ids.ts'
import type { NewJob } from '../job/record.ts'

export interface Flush {
  readonly id: FlushId
  readonly jobs: readonly NewJob[]
  /**
   * Handle of the caller's own transaction: the jobs are written if and only if the caller commits it. A store without the
   * facet `transactions` refuses it (HF_NO_TRANSACTIONS), and others refuse a handle that they don't know or that has no
   * transaction open (HF_BAD_OPTION), before anything is written.
   */
  readonly tx?: unknown
}

export interface EnqueueAnswer {
  /** The resulting job: the new one, or the holder of its unique key. */
  readonly id: JobId
  readonly outcome: 'inserted' | 'duplicate' | 'replaced' | 'rescheduled'
}
