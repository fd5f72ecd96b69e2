/** The facets of a store, beside its core in `store.ts`: the same promises hold for them. */
import type { AttemptError, FailureKind } from '../job/failure.ts'
import type { JobId, Token, WorkerId } from '../job/ids.ts'
import type { Due, JobRecord, NewJob } from '../job/record.ts'
import type { Settlement } from '../job/settlement.ts'
import type { JobState } from '../job/states.ts'
import type { EnqueueAnswer, Flush } from './flush.ts'

// ── upkeep ───────────────────────────────────────────────────────────────────

export interface Upkeep {
  /** Moves at most `limit` due jobs from scheduled to ready; tells when the next one is due. */
  promote(limit: number): Promise<{ readonly promoted: number; readonly nextInMs: number | null }>
  /**
   * Takes back leases of workers that are expired or missing, at most about `limit` jobs a call. A job that can have been
   * running (see "Starts" in `store.ts`) either waits out its crash delay as a suspect, or is dead if it has lost more
   * workers than `maxCrashes`; a record of the attempt is kept, from its claim to now. Any other job is released: ready
   * where it stood, its attempt handed back, no crash counted, no record. An expired worker is gone when it is listed: not
   * before the last of its leases is taken.
   */
  rescue(limit: number): Promise<RescueAnswer>
  /** Forgets finished jobs beyond the retention, at most `limit` a call, and old flush ids. */
  prune(retention: Retention, limit: number): Promise<{ readonly pruned: number }>
  /** Becomes or stays the leader until `ttlMs` from now; false where somebody else leads. */
  lead(candidate: WorkerId, ttlMs: number): Promise<boolean>
  /** Steps down at once, if it leads. */
  resign(candidate: WorkerId): Promise<void>
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
  /** Null for a job that cannot have been running. */
  readonly error: AttemptError | null
}

/** Finished jobs are kept for a time and up to a count; null means without a limit of that kind. */
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
 * Steps inside a transaction that the caller began with a library of its own. `tx` is that library's handle. The
 * transaction stays the caller's: nothing is tried again, nothing has a deadline, and whatever its database raises comes
 * out as it is.
 */
export interface Transactions {
  /**
   * As `Store.enqueue`, but written if and only if the caller commits. A handle that the store does not know, or on
   * which no transaction is open, is refused with HF_BAD_OPTION before anything is written.
   */
  enqueue(tx: unknown, flush: Flush): Promise<readonly EnqueueAnswer[]>
  /**
   * The same without a promise, for libraries whose transactions take no asynchronous function. It may be the first call
   * that the store gets: nobody may have opened it. Missing where the store cannot do that.
   */
  enqueueSync?(tx: unknown, flush: Flush): readonly EnqueueAnswer[]
  /**
   * As `Notes.list`, as the transaction sees them. Where it is missing they are read past the transaction: that takes a
   * connection besides the one that the transaction holds.
   */
  notes?(tx: unknown, kind: string): Promise<readonly Note[]>
  /**
   * Exactly-once effects: begins a transaction, lets `write` work in it, settles the position as what `write` resolves
   * to, and commits; all of it or nothing. Rejects with HF_LEASE_LOST where the position is not open under the token any
   * more. `write` runs again where the database asks for that.
   */
  commit(request: CommitRequest, write: (tx: unknown) => Promise<CompletedSettlement>): Promise<void>
}

export type CompletedSettlement = Extract<Settlement, { readonly type: 'completed' }>

export interface CommitRequest {
  readonly worker: WorkerId
  readonly token: Token
  readonly position: number
  /** How long the handler ran, asked for at the end. */
  readonly runMs: () => number
  readonly forget: boolean
}

// ── schedules ────────────────────────────────────────────────────────────────

export interface Schedules {
  /** Creates or changes a schedule; the ticks that it has fired stay fired. */
  put(schedule: ScheduleSpec): Promise<void>
  /** Forgets the schedule and the ticks it has fired. */
  remove(id: string): Promise<boolean>
  /** All schedules, and the store's time: ticks are computed from it. */
  list(): Promise<ScheduleList>
  /**
   * Fires one tick: enqueues its job and moves the schedule on, in one step, if `tick` is later than the last one
   * fired. Whoever comes second, or from the past, changes nothing. A job that meets its unique key's holder is a
   * duplicate as in any enqueue: the tick is fired.
   *
   * A last tick that lies in the store's future was fired before its clock was put back. It keeps only itself from
   * firing again: schedules would otherwise be silent until that time comes.
   */
  fire(
    id: string,
    tick: number,
    nextTick: number | null,
    job: NewJob,
  ): Promise<'fired' | 'already' | 'missing'>
}

export interface ScheduleSpec {
  readonly id: string
  /** JSON text that only the scheduler reads. */
  readonly spec: string
  readonly nextTick: number | null
}

export interface StoredSchedule extends ScheduleSpec {
  readonly lastTick: number | null
}

export interface ScheduleList {
  /** By the store's clock, in ms since 1970. */
  readonly now: number
  readonly schedules: readonly StoredSchedule[]
}

// ── notes ────────────────────────────────────────────────────────────────────

/** Small texts that all processes share: who listens to which events, which workers there are. */
export interface Notes {
  /** Writes or replaces a note of a kind; it is gone `ttlMs` later, or stays where that is null. */
  put(kind: string, id: string, text: string, ttlMs: number | null): Promise<void>
  remove(kind: string, id: string): Promise<boolean>
  /** Those of a kind that are not gone, in order of id. */
  list(kind: string): Promise<readonly Note[]>
}

export interface Note {
  readonly id: string
  readonly text: string
}

// ── admin ────────────────────────────────────────────────────────────────────

/** Maximum number of jobs that one call of `list`, `change` or `deadGroups` looks at. A store may stop sooner. */
export const MAX_SCAN = 200_000

/** What is common to calls that go through jobs. */
export interface Page {
  /**
   * Where the next call continues; null at the end. A page may be short, or empty, and still have a `next`: the store had
   * looked at as many jobs as it does in one call.
   */
  readonly next: JobId | null
  /** How many jobs the call examined. */
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
  /** Newest id first, by keyset: pages stay right while jobs come and go. Repeat from `next` until it is null. */
  list(query: ListQuery): Promise<JobPage>
  /** Exact, for every queue that is paused or has ever had a job. */
  queues(): Promise<readonly QueueStatus[]>
  /** After this is answered, no claim takes from a paused queue. */
  setPaused(queue: string, paused: boolean): Promise<void>
  /**
   * `cancelled`: it never runs again. `requested`: a worker holds it and is told (the first reason stays); the job may
   * start until `START_WITHIN_MS` from now (later if its worker is slow, see "Starts" in `store.ts`), unless the worker
   * settles it or reports the cancel as heard before that.
   * `heard`: the worker has reported it: the handler is running and its signal has fired. `final`: too late.
   */
  cancel(id: JobId, reason: string | null): Promise<CancelAnswer>
  /** Applies to at most `limit` matching jobs in order of id; repeat from `next` until it is null. */
  change(filter: JobFilter, action: BulkAction, limit: number, after: JobId | null): Promise<ChangeAnswer>
  /** Changes a job that waits; one that runs or is final stays as it is. */
  edit(id: JobId, edit: JobEdit): Promise<'edited' | 'running' | 'final' | 'missing'>
  /**
   * Groups at most `limit` matching dead jobs, in order of id: a group is told once a call, and again by later calls that
   * find more of it. Repeat from `next` until it is null.
   */
  deadGroups(filter: JobFilter, limit: number, after: JobId | null): Promise<DeadGroupPage>
}

export type CancelAnswer = 'cancelled' | 'requested' | 'heard' | 'final' | 'missing'

/** Jobs that match every part that is given. */
export interface JobFilter {
  /** Only these jobs are looked at: one call goes through all of them, if there are no more than its limit and MAX_BATCH. */
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
 * `replay`: dead jobs become ready with all their attempts again, with another payload where one is given, and take
 * their unique key again; one whose key is held by another is left. `cancel`: as `Admin.cancel`. `discard`: final jobs
 * are forgotten.
 */
export type BulkAction =
  | { readonly type: 'replay'; readonly payload?: string }
  | { readonly type: 'discard' }
  | { readonly type: 'cancel'; readonly reason: string | null }

export interface ChangeAnswer extends Page {
  readonly changed: number
  /** Matched, but not in a state (or without the key) that the action needs. */
  readonly skipped: number
}

/** What becomes different of a waiting job; all else stays, its attempts and its unique key too. */
export interface JobEdit {
  readonly payload?: string
  readonly rank?: { readonly priority: number; readonly headStartMs: number }
  readonly due?: Due
}

/** Dead jobs of one name in one queue that failed alike. */
export interface DeadGroup {
  readonly queue: string
  readonly name: string
  readonly fingerprint: string
  readonly count: number
  /** When the first and the last of them ended. */
  readonly firstAt: number
  readonly lastAt: number
  /** The one that ended last, and what it ended with. */
  readonly newest: JobId
  readonly kind: FailureKind
  readonly message: string
}
