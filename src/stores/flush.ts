/** What an enqueue writes in one step, and what it is answered. */
import type { FlushId, JobId } from '../job/ids.ts'
import type { NewJob } from '../job/record.ts'

export interface Flush {
  readonly id: FlushId
  readonly jobs: readonly NewJob[]
}

export interface EnqueueAnswer {
  /** The job that now stands for the enqueue: the new one, or the holder of its unique key. */
  readonly id: JobId
  readonly outcome: 'inserted' | 'duplicate' | 'replaced' | 'rescheduled'
}
