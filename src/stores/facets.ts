/** The facets of a store; its core is in `store.ts`. The same guarantees apply. */
import type { AttemptError, FailureKind } from '../job/failure.ts'
import type { JobId, Token, WorkerId } from '../job/ids.ts'
import type { Due, JobRecord, NewJob } from '../job/record.ts'
import type { Settlement } from '../job/settlement.ts'
import type { JobState } from '../job/states.ts'
import type { EnqueueAnswer, Flush } from './flush.ts'

// ── upkeep ───────────────────────────────────────────────────────────────────

export interface Upkeep {
  /** Moves at most `limit` due jobs from scheduled to ready. Answers when the next one is due. */
  promote(limit: number): Promise<{ readonly promoted: number; readonly nextInMs: number | null }>
  /**
   * Takes back leases of workers that are expired or missing, about `limit` jobs per call. A job that may have been
   * running (see "Starts" in `store.ts`) waits out its crash delay as a suspect, or is dead if it has lost more workers
   * than `maxCrashes`; a record of the attempt is kept, from its claim to now. Any other job is released: ready in its
   * old place, no attempt used, no crash counted, no record. A worker is listed once the last of its leases is taken.
   */
  rescue(limit: number): Promise<RescueAnswer>
  /** Deletes finished jobs beyond the retention, at most `limit` per call, and old flush ids. */
  prune(retention: Retention, limit: number): Promise<{ readonly pruned: number }>
  /**
   * Makes the candidate the leader until `ttlMs` from now, unless another one leads. With 0, a leader steps down at once.
   * Answers whether the candidate leads now.
   */
  lead(candidate: WorkerId, ttlMs: number): Promise<boolean>
}

export interface RescueAnswer {
  readonly workers: readonly WorkerId[]
  readonly jobs: readonly RescuedJob[]
}

export interface RescuedJob {
  readonly id: JobId
  readonly name: string
  readonly queue: string
  readonly worker: WorkerId
  readonly crashes: number
  readonly to: 'ready' | 'scheduled' | 'dead' | 'cancelled'
  /** Null for a job that can't have been running. */
  readonly error: AttemptError | null
}

/** How long, and how many, finished jobs are kept. Null means no limit on their number. */
export interface Retention {
  readonly completedMs: number
  readonly deadMs: number
  readonly cancelledMs: number
  readonly maxCompleted: number | null
  readonly maxDead: number | null
  readonly maxCancelled: number | null
}

// ── transactions ─────────────────────────────────────────────────────────────

/**
 * A store has this facet if callers can enqueue in their own transactions on its data. `Flush.tx` is then a handle of
 * the caller's library, with a transaction open. The transaction stays the caller's: the store sets no deadline,
 * retries nothing, and passes the database's errors on unchanged.
 */
export interface Transactions {
  /**
   * Exactly-once effects. Begins a transaction, runs `write` in it, settles the position with the value that `write`
   * resolves to, and commits: all or nothing. Rejects with HF_LEASE_LOST if the position is not open under the token
   * any more. `write` runs again if the database asks for that.
   */
  commit(request: CommitRequest, write: (tx: unknown) => Promise<CompletedSettlement>): Promise<void>
  /**
   * `Store.enqueue` for a flush with a `tx`, without a promise, for libraries whose transactions take no asynchronous
   * function. It may be the first call of all, before `open`. Missing if the store can't do that.
   */
  enqueueSync?(flush: Flush): readonly EnqueueAnswer[]
}

export type CompletedSettlement = Extract<Settlement, { readonly type: 'completed' }>

export interface CommitRequest {
  readonly worker: WorkerId
  readonly token: Token
  readonly position: number
  /** How long the handler ran. Called right before the settle. */
  readonly runMs: () => number
  readonly forget: boolean
}

// ── schedules ────────────────────────────────────────────────────────────────

export interface Schedules {
  /**
   * Creates or changes a schedule; its last tick stays. Null removes it, and its last tick. False if there was nothing to
   * remove.
   */
  put(id: string, schedule: ScheduleSpec | null): Promise<boolean>
  /** All schedules, and the store's time, from which ticks are computed. */
  list(): Promise<ScheduleList>
  /**
   * Fires a tick if it is later than the last one: enqueues its job and advances the schedule, in one step. So of
   * several callers, one fires it. If another job holds the job's unique key, the job is a duplicate, as in any
   * enqueue, and the tick has fired.
   *
   * If the last tick lies in the store's future, its clock has been set back since. That tick does not fire again, but
   * earlier ones do: otherwise the schedule would be silent until then.
   */
  fire(
    id: string,
    tick: number,
    nextTick: number | null,
    job: NewJob,
  ): Promise<'fired' | 'already' | 'missing'>
}

export interface ScheduleSpec {
  /** JSON text that only the scheduler reads. */
  readonly spec: string
  readonly nextTick: number | null
}

export interface StoredSchedule extends ScheduleSpec {
  readonly id: string
  readonly lastTick: number | null
}

export interface ScheduleList {
  /** By the store's clock, in ms since 1970. */
  readonly now: number
  readonly schedules: readonly StoredSchedule[]
}

// ── notes ────────────────────────────────────────────────────────────────────

/** Small texts that all processes share: subscriptions to events, the fleet's workers, cursors. */
export interface Notes {
  /**
   * Writes or replaces a note. It expires `ttlMs` later, or never if that is null. A null text removes the note. False if
   * there was nothing to remove.
   */
  put(kind: string, id: string, text: string | null, ttlMs: number | null): Promise<boolean>
  /** All notes of a kind that have not expired, in order of id; as the transaction sees them, if `tx` is given. */
  list(kind: string, tx?: unknown): Promise<readonly Note[]>
}

export interface Note {
  readonly id: string
  readonly text: string
}

// ── admin ────────────────────────────────────────────────────────────────────

/** Maximum number of jobs that one call of `list`, `change` or `deadGroups` examines. A store may stop sooner. */
export const MAX_SCAN = 200_000

/** Fields shared by calls that scan jobs. */
export interface Page {
  /**
   * Where the next call continues; null at the end. A page may be short, or empty, and still have a `next`: the store then
   * examined as many jobs as it does in one call.
   */
  readonly next: JobId | null
  /** Number of jobs that the call examined. */
  readonly looked: number
}

export interface JobPage extends Page {
  readonly jobs: readonly JobRecord[]
}

export interface DeadGroupPage extends Page {
  readonly groups: readonly DeadGroup[]
}

export interface Admin {
  get(id: JobId): Promise<JobRecord | null>
  /** Newest id first, by keyset, so pages stay right while jobs come and go. Repeat from `next` until it is null. */
  list(query: ListQuery): Promise<JobPage>
  /** Exact counts of every queue that is paused or has ever had a job. */
  queues(): Promise<readonly QueueStatus[]>
  /** Pauses or resumes a queue. No claim takes from a paused queue once this is answered. */
  setPaused(queue: string, paused: boolean): Promise<void>
  /**
   * Applies a change to at most `limit` matching jobs, in order of id. Repeat from `next` until it is null. To change one
   * job, name its id: if no outcome is counted, there is no such job.
   */
  change(filter: JobFilter, change: JobChange, limit: number, after: JobId | null): Promise<ChangeAnswer>
  /**
   * Groups at most `limit` matching dead jobs, in order of id. Later calls answer a group again if they find more of it.
   * Repeat from `next` until it is null.
   */
  deadGroups(filter: JobFilter, limit: number, after: JobId | null): Promise<DeadGroupPage>
}

/** Jobs that match every part that is given. */
export interface JobFilter {
  /** Only these jobs are examined: all of them in one call, if there are no more than its limit and 50. */
  readonly ids?: readonly JobId[]
  readonly states?: readonly JobState[]
  readonly queues?: readonly string[]
  readonly names?: readonly string[]
  /** Of the newest error. */
  readonly fingerprints?: readonly string[]
  /** Final jobs that ended at this time or later … */
  readonly finishedFrom?: number
  /** … and before this time. */
  readonly finishedBefore?: number
  /** Jobs that carry at least one of these tags. */
  readonly tags?: readonly string[]
  /** Jobs created at this time or later, by the store's clock … */
  readonly createdFrom?: number
  /** … and before this time. */
  readonly createdBefore?: number
  /** Jobs whose id begins with this text (lower-case hex with dashes). */
  readonly idPrefix?: string
}

export interface ListQuery extends JobFilter {
  readonly limit: number
  /** Starts after this id, the `next` of the page before. */
  readonly after: JobId | null
}

export interface QueueStatus {
  readonly queue: string
  readonly paused: boolean
  readonly counts: Readonly<Record<JobState, number>>
  /** When its oldest ready job became due. */
  readonly oldestReadyAt: number | null
}

/**
 * - `cancel`: a waiting job never runs; the worker of a running job is notified, and the first reason stays.
 * - `replay`: a dead job is ready with all its attempts again, with another payload if one is given, and takes its unique
 *   key again.
 * - `discard`: a final job is deleted.
 * - `edit`: changes a waiting job. Missing fields stay, and so do its attempts and its unique key.
 */
export type JobChange =
  | { readonly type: 'cancel'; readonly reason: string | null }
  | { readonly type: 'replay'; readonly payload?: string }
  | { readonly type: 'discard' }
  | ({ readonly type: 'edit' } & JobEdit)

export interface JobEdit {
  readonly payload?: string
  readonly rank?: { readonly priority: number; readonly headStartMs: number }
  readonly due?: Due
}

/**
 * The outcome of a change for a job.
 * - Changed: `cancelled`, `replayed`, `discarded`, `edited`. `requested`: the cancel of a running job. It may still start until
 *   `START_WITHIN_MS` from now (later if its worker is slow, see "Starts" in `store.ts`), unless the worker settles it or
 *   reports the cancel as heard before that. `heard`: the worker has reported it; the handler is running, its signal
 *   has aborted.
 * - Left as it is: `running` (an edit), `final` (a cancel or an edit), `not_dead` or `key_held` by another job (a replay),
 *   `not_final` (a discard).
 */
export type ChangeOutcome =
  | 'cancelled'
  | 'requested'
  | 'heard'
  | 'replayed'
  | 'discarded'
  | 'edited'
  | 'running'
  | 'final'
  | 'not_dead'
  | 'not_final'
  | 'key_held'

/** Number of jobs with each outcome; an outcome of no job is missing. */
export type ChangeCounts = Readonly<Partial<Record<ChangeOutcome, number>>>

export interface ChangeAnswer extends Page {
  readonly outcomes: ChangeCounts
}

/** Dead jobs of one name in one queue whose last errors have the same fingerprint. */
export interface DeadGroup {
  readonly queue: string
  readonly name: string
  readonly fingerprint: string
  readonly count: number
  /** When the first and the last of them ended. */
  readonly firstAt: number
  readonly lastAt: number
  /** The one that ended last, and its error. */
  readonly newest: JobId
  readonly kind: FailureKind
  readonly message: string
}
