/** What the demo knows at one moment: all that its view draws. */
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

/** A slot of the worker: what runs in it, or what ran there last. */
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
  /** How often lately, where it is one of many alike. */
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
  /** Of the last seconds, one figure a second. */
  readonly perSecond: { readonly in: number; readonly out: number }
  /** Failed attempts among those that ended in the last seconds, from 0 to 1. */
  readonly failing: number
  /** Second by second, the oldest first. */
  readonly completedHistory: readonly number[]
  readonly failedHistory: readonly number[]
  readonly wait: Percentiles | null
  readonly run: Percentiles | null
  readonly slots: readonly (SlotRow | null)[]
  /** The newest first. */
  readonly troubles: readonly Trouble[]
}
