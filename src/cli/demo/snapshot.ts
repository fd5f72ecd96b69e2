/** The demo's state at one moment: everything that the view draws. */
import type { QueueStatus } from '../../stores/store.ts'

export interface Totals {
  readonly enqueued: number
  readonly completed: number
  readonly retried: number
  readonly parked: number
  readonly dead: number
  readonly released: number
}

export interface Percentiles {
  readonly p50: number
  readonly p95: number
}

/** A worker slot: the job that runs in it, or the last one that did. */
export interface SlotRow {
  readonly id: string
  readonly job: string
  readonly state: 'running' | 'completed' | 'failed' | 'parked' | 'released'
  readonly ms: number
  readonly progress: { readonly done: number; readonly total: number; readonly note: string } | null
}

export interface Trouble {
  readonly kind: 'retry' | 'dead' | 'parked'
  /** Since the demo began. */
  readonly atMs: number
  /** Number of recent occurrences, if there are several alike. */
  readonly times: number
  readonly job: string
  readonly attempt: number
  readonly maxAttempts: number
  readonly againInMs: number | null
  readonly reason: string
}

export interface Snapshot {
  readonly store: string
  readonly upMs: number
  readonly stopping: boolean
  /** Jobs that an earlier run had left unfinished. */
  readonly found: number
  readonly queues: readonly Pick<QueueStatus, 'queue' | 'counts'>[]
  readonly totals: Totals
  /** The last seconds, one figure per second. */
  readonly perSecond: { readonly in: number; readonly out: number }
  /** Share of failed attempts among those that ended in the last seconds, from 0 to 1. */
  readonly failing: number
  /** One figure per second, oldest first. */
  readonly completedHistory: readonly number[]
  readonly failedHistory: readonly number[]
  readonly wait: Percentiles | null
  readonly run: Percentiles | null
  readonly slots: readonly (SlotRow | null)[]
  /** The newest first. */
  readonly troubles: readonly Trouble[]
}
