/**
 * The contract between Holdfast and a store: a small core that every enqueue and every worker uses, and three facets
 * for upkeep, schedules and administration; a fourth, for the callers' own transactions, is not in every store.
 * `conformance/` is this file as tests.
 *
 * Every method is one atomic step: it happens wholly or not at all, and a caller that got no answer may repeat the
 * call. Only the store's clock compares times. No method waits for work; `subscribe` tells when to look again.
 *
 * A caller that breaks the contract itself (a flush beyond `MAX_BATCH`, an id that exists already) is refused before
 * anything is written. Claims take only what is ready; only `promote` moves a due job there.
 *
 * Leases. A worker incarnation is registered with a lease that heartbeats renew. A claim takes due jobs and puts them
 * under a token; that lease record is the fence: whoever presents the token settles, until a rescue takes the lease
 * away. An expired worker keeps settling and may even be renewed; expiry only permits rescue. A rescued lease never
 * settles anything again, and a claim by a worker that is gone takes nothing and says `alive: false`.
 */
import type { AttemptError } from '../job/failure.ts'
import type { FlushId, JobId, Token, WorkerId } from '../job/ids.ts'
import type { ClaimedJob, JobLogLine, JobRecord, NewJob, Progress } from '../job/record.ts'
import type { Settlement } from '../job/settlement.ts'
import type { JobState } from '../job/states.ts'

export interface Store {
  /** For messages: 'memory', 'postgres' … */
  readonly kind: string
  /** Connects and prepares; safe to call again. Rejects when the store cannot be used. */
  open(): Promise<void>
  /** Gives everything back; later calls reject. Safe to call again. */
  close(): Promise<void>

  // ── core ───────────────────────────────────────────────────────────────────
  /**
   * Writes all jobs or none, once for each flush id: a repeat answers as the first did, whatever the jobs have become
   * meanwhile. Flush ids are remembered for `FLUSH_MEMORY_MS` at least.
   */
  enqueue(flush: Flush): Promise<readonly EnqueueAnswer[]>
  /** Makes an incarnation known; it lives until its lease expires and a rescue finds it, or until it retires. */
  register(worker: WorkerId, leaseMs: number): Promise<void>
  /** Forgets the incarnation. Leases it still holds become rescuable at once. */
  retire(worker: WorkerId): Promise<void>
  /** Settles, then claims: one step, either part may be empty. Settles are answered also where `alive` is false. */
  cycle(request: CycleRequest): Promise<CycleAnswer>
  /** Renews the lease of a worker that is not rescued, and tells what it should know; nothing at all for one that is. */
  heartbeat(request: HeartbeatRequest): Promise<HeartbeatAnswer>
  /**
   * Where leases expire: renews this one from outside the event loop, so that a handler that blocks it does not lose its
   * jobs. Begins at once and never throws; null where that cannot be. Heartbeats go on as they do, and what fails here
   * costs nothing but this help. A store whose leases outlast a blocked loop anyway does not have it.
   */
  keepAlive?(worker: WorkerId, leaseMs: number): Pulse | null
  /** Keeps progress and log lines of running jobs (they stay with the job when it comes back); what is not under the token any more is ignored. */
  report(worker: WorkerId, reports: readonly Report[]): Promise<void>
  /** Best effort: hints may be late, doubled or lost, so a listener also polls. Resolves to how to stop. */
  subscribe(listener: (hint: WakeUp) => void): Promise<() => Promise<void>>

  readonly upkeep: Upkeep
  readonly schedules: Schedules
  readonly admin: Admin
  /** Missing where callers cannot have a transaction on the store's data: then `{ tx }` is refused. */
  readonly transactions?: Transactions
}

/** How long a store remembers a flush: far longer than any client keeps repeating one. */
export const FLUSH_MEMORY_MS = 600_000
/** The most jobs in one flush, one claim or one settle. */
export const MAX_BATCH = 1_000
/** The most log lines kept of one job; the oldest go first. */
export const MAX_LOG_LINES = 100

export interface Flush {
  readonly id: FlushId
  readonly jobs: readonly NewJob[]
}

export interface EnqueueAnswer {
  /** The job that now stands for the enqueue: the new one, or the holder of its unique key. */
  readonly id: JobId
  readonly outcome: 'inserted' | 'duplicate' | 'replaced' | 'rescheduled'
}

export interface CycleRequest {
  readonly worker: WorkerId
  readonly settle: readonly SettleRequest[]
  readonly claim: ClaimRequest | null
}

/** One position of a lease and what to write there. */
export interface SettleRequest {
  readonly token: Token
  readonly position: number
  readonly settlement: Settlement
  /** How long the handler ran. */
  readonly runMs: number
  /** Of a completed job nothing is kept. */
  readonly forget?: boolean
}

/**
 * `written`: by this call. `already`: this position was settled before, by a repeat or a crossing call; nothing was
 * changed. `lost`: the lease is not this worker's any more; nothing was changed. A lease that was settled to its end is
 * answered with `already` for `FLUSH_MEMORY_MS` at least; one that was revoked, with `lost` for ever (or with `already`
 * for the positions that had been settled before).
 *
 * Of a job whose cancel was requested, a settlement that would bring it back (retry, snooze, release) writes cancelled
 * instead; completed and dead stay what they are.
 */
export type SettleAnswer = 'written' | 'already' | 'lost'

export interface ClaimRequest {
  readonly queue: string
  /** Counts the suspect too. */
  readonly limit: number
  /** Whether a suspect (a job that lost workers before) may be among them; it comes in a lease of its own. */
  readonly suspects: boolean
}

export interface Lease {
  readonly token: Token
  readonly queue: string
  /** By the store's clock: the waits of its jobs end here. */
  readonly claimedAt: number
  /** In order of rank; the index is the position to settle by. */
  readonly jobs: readonly ClaimedJob[]
}

export interface CycleAnswer {
  readonly alive: boolean
  /** One for each settle, in order. */
  readonly settled: readonly SettleAnswer[]
  /** At most one lease of plain jobs and one of a suspect; empty where nothing is claimable. */
  readonly leases: readonly Lease[]
}

export interface HeartbeatRequest {
  readonly worker: WorkerId
  /** Leases in this worker's name whose claim answer never reached it: released, attempts handed back. */
  readonly strangers: readonly Token[]
}

export interface HeartbeatAnswer {
  readonly alive: boolean
  /** All leases in this worker's name, as the store sees them. */
  readonly tokens: readonly Token[]
  readonly cancelled: readonly CancelNotice[]
}

export interface CancelNotice {
  readonly token: Token
  readonly position: number
  readonly reason: string | null
}

/** One lease that is renewed from outside the event loop, for as long as the loop is worth it. */
export interface Pulse {
  /**
   * When the newest renewal that was answered had been sent, by the monotonic clock of this process; -Infinity before
   * the first. The lease counts from there.
   */
  readonly sentMs: number
  /** False once the store said that the worker is gone. */
  readonly alive: boolean
  /** The event loop turns: to be called several times a lease. */
  turned(): void
  /** How long the loop may stand still before renewals stop; 0 stops them now. @default one lease */
  setPatience(ms: number): void
  /** A job of this name runs: it is named while the loop is blocked. */
  started(name: string): void
  ended(name: string): void
  /** No renewal is sent any more. Safe to call again. */
  stop(): void
}

export interface Report {
  readonly token: Token
  readonly position: number
  readonly progress: Progress | null
  readonly log: readonly JobLogLine[]
}

export type WakeUp =
  /** A queue has claimable jobs that it may not have had before. */
  | { readonly type: 'ready'; readonly queue: string }
  /** A job falls due this soon. */
  | { readonly type: 'due'; readonly inMs: number }
  /** A running job of this worker is to be cancelled: a heartbeat tells which. */
  | { readonly type: 'cancel'; readonly worker: WorkerId }

// ── upkeep ───────────────────────────────────────────────────────────────────

export interface Upkeep {
  /** Moves at most `limit` due jobs from scheduled to ready; tells when the next one is due. */
  promote(limit: number): Promise<{ readonly promoted: number; readonly nextInMs: number | null }>
  /**
   * Takes back leases of workers that are expired or missing, at most about `limit` jobs a call. Each job either waits
   * out its crash delay as a suspect, or is dead when it has lost more workers than `maxCrashes`. An expired worker is
   * gone when it is listed: not before the last of its leases is taken.
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
  readonly to: 'scheduled' | 'dead' | 'cancelled'
  readonly error: AttemptError
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
   * Where a call from inside a `commit` that does not go through its transaction would wait for itself: throws
   * HF_INSIDE_TRANSACTION there. For callers whose calls are made elsewhere on their behalf, as coalesced ones are.
   */
  refuseInside?(doing: string): void
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
  /** Creates or changes a schedule; the slots that it has fired stay fired. */
  put(schedule: ScheduleSpec): Promise<void>
  /** Forgets the schedule and the slots it has fired. */
  remove(id: string): Promise<boolean>
  list(): Promise<readonly StoredSchedule[]>
  /**
   * Fires one slot: enqueues its job and moves the schedule on, in one step, if `slot` is later than the last one
   * fired. Whoever comes second, or from the past, changes nothing. A job that meets its unique key's holder is a
   * duplicate as in any enqueue: the slot is fired.
   */
  fire(
    id: string,
    slot: number,
    nextSlot: number | null,
    job: NewJob,
  ): Promise<'fired' | 'already' | 'missing'>
}

export interface ScheduleSpec {
  readonly id: string
  /** JSON text that only the scheduler reads. */
  readonly spec: string
  readonly nextSlot: number | null
}

export interface StoredSchedule extends ScheduleSpec {
  readonly lastSlot: number | null
}

// ── admin ────────────────────────────────────────────────────────────────────

export interface Admin {
  get(id: JobId): Promise<JobRecord | null>
  /** Newest first, by keyset: pages stay right while jobs come and go. */
  list(query: ListQuery): Promise<{ readonly jobs: readonly JobRecord[]; readonly next: JobId | null }>
  /** Exact, for every queue that is paused or has ever had a job. */
  queues(): Promise<readonly QueueStatus[]>
  /** After this is answered, no claim takes from a paused queue. */
  setPaused(queue: string, paused: boolean): Promise<void>
  /** `cancelled`: it never runs again. `requested`: its worker is told (the first reason stays). `final`: too late. */
  cancel(id: JobId, reason: string | null): Promise<'cancelled' | 'requested' | 'final' | 'missing'>
  /** Applies to at most `limit` matching jobs in order of id; repeat from `next` until it is null. */
  change(filter: JobFilter, action: BulkAction, limit: number, after: JobId | null): Promise<ChangeAnswer>
}

export interface JobFilter {
  readonly ids?: readonly JobId[]
  readonly states?: readonly JobState[]
  readonly queues?: readonly string[]
  readonly names?: readonly string[]
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
 * `replay`: dead jobs become ready with all their attempts again and take their unique key again; one whose key is
 * held by another is left. `cancel`: as `Admin.cancel`. `discard`: final jobs are forgotten.
 */
export type BulkAction =
  | { readonly type: 'replay' }
  | { readonly type: 'discard' }
  | { readonly type: 'cancel'; readonly reason: string | null }

export interface ChangeAnswer {
  readonly changed: number
  /** Matched, but not in a state (or without the key) that the action needs. */
  readonly skipped: number
  readonly next: JobId | null
}
