/** What an enqueue writes in one step, its answer, and what every store refuses. */
import { HoldfastError } from '../errors.ts'
import type { FlushId, JobId } from '../job/ids.ts'
import type { NewJob } from '../job/record.ts'

/** Maximum number of jobs in one flush, one claim or one settle. */
export const MAX_BATCH = 1_000

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

/** The error for a flush that breaks the contract. `what` completes "The … store was given". */
export function badFlush(kind: string, what: string): HoldfastError {
  return new HoldfastError('HF_STORE_CONTRACT', `The ${kind} store was given ${what}.`, {
    hint: 'Make each id once, and repeat a flush under its own flush id.',
  })
}
