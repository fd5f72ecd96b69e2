/**
 * The contract between Holdfast and a store: a small core that every enqueue and every worker uses, and the facets in
 * `facets.ts`: maintenance (`upkeep`), schedules, notes, administration. One more, `transactions`, is optional.
 * `conformance/` is the contract as tests; `check-store.ts` lists all methods.
 *
 * Every method is one atomic step: it happens as a whole or not at all, and a caller that got no answer may repeat the call.
 * Only the store's clock compares times. No method waits for work; `subscribe` tells when to look again.
 *
 * Permanent errors. A call that breaks the contract (a flush beyond `MAX_BATCH`, an id that exists already, an unknown kind of
 * settlement) is refused with HF_STORE_CONTRACT, and a value that the store can't hold with HF_STORE_REFUSED, before anything
 * is written. HF_STORE_DENIED, HF_STORE_MISSING and HF_BAD_CURSOR are permanent too, and a store without room answers
 * HF_STORE_FULL. Any other error counts as an outage. Claims take only ready jobs, and only `promote` makes a due job ready.
 *
 * Deadlines. `withinMs` is how long the caller waits for an answer; after that it has given up, and may have sent the call
 * again. A store that makes calls wait (for a connection, say) does not send one after that time. What was sent goes on.
 *
 * Leases. A worker incarnation is registered with a lease that heartbeats renew. A claim takes ready jobs and puts them
 * under a token. That lease record is the fence: whoever presents the token settles, until a rescue takes the lease away.
 * An expired worker keeps settling and may even be renewed; expiry only permits a rescue. A rescued lease never settles
 * anything again, and a claim by a worker that is gone takes nothing and answers `alive: false`.
 *
 * Starts. The store does not know when a handler starts. The worker makes two promises instead:
 * - It starts a job only within `START_WITHIN_MS` of sending the claim that brought it (for a job that was handed over: of the
 *   moment that it was), or of sending a later heartbeat that was answered. So the answers to claims and heartbeats carry everything that may forbid a start: cancels and pauses. Wake-ups
 *   only make this faster. `START_WITHIN_MS` after a cancel was answered, no handler starts that job, even if every wake-up
 *   was lost or the worker's process was frozen. A worker whose answers take longer uses more time, up to `LONGEST_START_MS`:
 *   it first puts a note of the kind `SLOW_WORKER`, which says how much, and uses it only for calls sent after that was answered.
 * - It starts a job only while fewer than `atOnce` open jobs stand before it in the order (token, position) of the worker's
 *   leases. So only the first `atOnce` open jobs of a lost worker can have been running. A store that keeps queues apart
 *   may count each queue on its own.
 */
import type { Token, WorkerId } from '../job/ids.ts'
import type { AttemptRecord, ClaimedJob, JobLogLine, Progress } from '../job/record.ts'
import type { Settlement } from '../job/settlement.ts'
import type { Admin, Notes, Schedules, Transactions, Upkeep } from './facets.ts'
import type { EnqueueAnswer, Flush } from './flush.ts'

export type * from './facets.ts'
export { MAX_SCAN } from './facets.ts'
export type * from './flush.ts'
export { MAX_BATCH } from './flush.ts'

export interface Store {
  /** Name of the kind of store, for messages: 'memory', 'postgres' … */
  readonly kind: string
  /** Connects and prepares. Safe to call again. Rejects if the store can't be used. */
  open(): Promise<void>
  /** Releases everything; later calls reject with HF_CLOSED. Safe to call again. */
  close(): Promise<void>

  // ── core ───────────────────────────────────────────────────────────────────
  /**
   * Writes all jobs or none, once per flush id. A repeat gets the answer of the first try, whatever has happened to the
   * jobs since. Flush ids are remembered for at least `FLUSH_MEMORY_MS`.
   */
  enqueue(flush: Flush, withinMs?: number): Promise<readonly EnqueueAnswer[]>
  /**
   * Registers an incarnation. It is alive until it retires, or until its lease has expired and a rescue finds it. `atOnce`: see
   * "Starts" above; without it, every job that the worker holds may be running. Registering again renews the lease and
   * leaves that number as it is, because the call may be a repeat that arrives after heartbeats.
   */
  register(worker: WorkerId, leaseMs: number, atOnce?: number): Promise<void>
  /** Ends the incarnation. Leases that it still holds can be rescued at once. */
  retire(worker: WorkerId): Promise<void>
  /** Keeps reports, then settles, then claims, in one step. Any part may be empty. Settles are answered even if `alive` is false. */
  cycle(request: CycleRequest, withinMs?: number): Promise<CycleAnswer>
  /** Renews a worker's lease and returns the state that it needs. Does nothing for a worker that was rescued. */
  heartbeat(request: HeartbeatRequest): Promise<HeartbeatAnswer>
  /**
   * Renews this lease from outside the event loop, so that a handler that blocks the loop does not lose its jobs.
   * Begins at once and never throws; null if it can't. Heartbeats continue as before, so a failure here has no other
   * effect. Missing if the store's leases outlast a blocked loop anyway.
   */
  keepAlive?(worker: WorkerId, leaseMs: number): Pulse | null
  /** Best effort: hints may be late, repeated or lost, so listeners also poll. Resolves to a function that unsubscribes. */
  subscribe(listener: (hint: WakeUp) => void): Promise<() => Promise<void>>

  readonly upkeep: Upkeep
  readonly schedules: Schedules
  readonly notes: Notes
  readonly admin: Admin
  /** Missing if callers can't have a transaction on the store's data; then `{ tx }` is refused. */
  readonly transactions?: Transactions
}

/** A worker starts a claimed job at most this long after it last asked the store about it. */
export const START_WITHIN_MS = 800
/** Maximum that a worker uses instead if the store answers slowly. */
export const LONGEST_START_MS = 10_000
/** Kind of the note in which such a worker says how many milliseconds it uses. */
export const SLOW_WORKER = 'slow-worker'
/** How long a store remembers a flush id: far longer than any client keeps repeating one. */
export const FLUSH_MEMORY_MS = 600_000
/** A request that has not reached the store this long after its caller gave up will never reach it. */
export const LATEST_ARRIVAL_MS = 600_000
/** Maximum number of log lines kept per job: the newest. */
export const MAX_LOG_LINES = 100
/** Maximum number of attempt records kept per job: the newest. */
export const MAX_ATTEMPT_RECORDS = 100

export interface CycleRequest {
  readonly worker: WorkerId
  readonly settle: readonly SettleRequest[]
  readonly claim: ClaimRequest | null
  /** Missing if there are none, as in nearly every cycle. */
  readonly reports?: readonly Report[]
  /** Missing for a caller that takes no hand-offs. A store that hands nothing over ignores it. */
  readonly offer?: Offer
}

/**
 * Offers to take jobs as they are enqueued: instead of announcing a job as ready, the store may lease it to this worker at
 * once, by the rules of a claim without suspects, and tell it by a wake-up (`leased`). That saves the claim.
 *
 * The offer ends the worker's earlier one, before the claim of its cycle: leases that were handed over and are not among
 * `received` are released then, without using an attempt. So a wake-up that is lost delays a job until the next claim, and a
 * worker ignores leases of an offer once it has sent a later one. The new offer opens after the claim, if that got less than
 * it asked for and the worker is alive; what the claim got counts. It ends with its time, its jobs, the next offer, or the
 * worker. A claim without an offer leaves an open one as it is.
 */
export interface Offer {
  /** Greater than that of every earlier offer of the incarnation. */
  readonly nth: number
  /** Maximum number of jobs; 0 only ends the earlier offer. */
  readonly jobs: number
  readonly queues: readonly string[]
  readonly forMs: number
  /** Leases that were handed over since the last offer that was answered, and have arrived. */
  readonly received: readonly Token[]
}

/** One position of a lease, and the settlement of its job. */
export interface SettleRequest {
  readonly token: Token
  readonly position: number
  readonly settlement: Settlement
  /** How long the handler ran. */
  readonly runMs: number
  /** Delete the job once it completes or dies. */
  readonly forget?: boolean
  /**
   * Appended to the job's attempt records, whatever the settlement turns out to be. None for an attempt that leaves no trace; a
   * completed job's own record describes its last attempt.
   */
  readonly record?: AttemptRecord | null
  /** Maximum number of records that the job keeps, including this one: the newest. @default MAX_ATTEMPT_RECORDS */
  readonly keepRecords?: number
  /**
   * For `release` and `confirm`: the job as it was claimed, so that a store knows its place if it becomes ready again.
   */
  readonly job?: ClaimedJob
}

/**
 * `written`: by this call. `already`: an earlier or concurrent call settled this position; nothing was changed. `lost`:
 * the lease is no longer this worker's; nothing was changed. The answer for a fully settled lease is `already`, for at
 * least `FLUSH_MEMORY_MS`; for a revoked lease it is always `lost` (or `already` for positions settled before that). A
 * store that can't tell after a crash of its server answers `lost`.
 *
 * If the job's cancel was requested, a settlement after which it would come back (see `comesBack`) writes cancelled instead.
 *
 * A `confirm` is answered `already` if the commit that it confirms is there, and `written` if it was lost.
 */
export type SettleAnswer = 'written' | 'already' | 'lost'

export interface ClaimRequest {
  readonly queue: string
  /** Includes the suspect. */
  readonly limit: number
  /** Whether one suspect (a job that lost workers before) may be claimed too. It comes in its own lease. */
  readonly suspects: boolean
}

export interface Lease {
  readonly token: Token
  readonly queue: string
  /** By the store's clock. */
  readonly claimedAt: number
  /** In order of rank. The index is the position. */
  readonly jobs: readonly ClaimedJob[]
}

export interface CycleAnswer {
  readonly alive: boolean
  /** One per settle, in order. */
  readonly settled: readonly SettleAnswer[]
  /** At most one lease of plain jobs and one of a suspect; empty if nothing can be claimed. */
  readonly leases: readonly Lease[]
  /** The store's time when the offer opened; missing if it did not. */
  readonly offeredAt?: number
}

export interface HeartbeatRequest {
  readonly worker: WorkerId
  /** Leases of this worker whose claim answer never reached it: released, without using an attempt. */
  readonly undelivered: readonly Token[]
  /**
   * Cancels that took effect here: the handler is running and its signal has aborted. The store doesn't report them
   * again, and further cancels are answered with `heard`. A job that was not started is settled instead.
   */
  readonly heard?: readonly LeasePosition[]
  /** Replaces the number given to `register`, from this call on. Unchanged if missing. */
  readonly atOnce?: number
  /**
   * Number of this heartbeat, greater than that of every earlier heartbeat of the incarnation. Requests may arrive late and in
   * any order: `atOnce` is ignored if a heartbeat with a greater number arrived first.
   */
  readonly nth?: number
}

export interface LeasePosition {
  readonly token: Token
  readonly position: number
}

export interface HeartbeatAnswer {
  readonly alive: boolean
  /** All leases of this worker. */
  readonly tokens: readonly Token[]
  /** Cancels of open jobs that the worker has not reported as heard. */
  readonly cancelled: readonly CancelNotice[]
  /** Paused queues, at least those that this worker holds jobs of. */
  readonly paused: readonly string[]
}

export interface CancelNotice extends LeasePosition {
  readonly reason: string | null
}

/** Renews one lease from outside the event loop, while the loop is expected to recover. */
export interface Pulse {
  /**
   * When the newest answered renewal was sent, by the monotonic clock of this process; -Infinity before the first. The lease
   * counts from there.
   */
  readonly sentMs: number
  /** False once the store has answered that the worker is gone. */
  readonly alive: boolean
  /** Reports that the event loop is turning. Call it several times per lease. */
  turned(): void
  /** How long the loop may be blocked before renewals stop; 0 stops them now. @default one lease */
  setPatience(ms: number): void
  /** A job of this name runs. It is named if the loop is blocked. */
  started(name: string): void
  ended(name: string): void
  /** Stops renewing. Safe to call again. */
  stop(): void
}

/**
 * Progress and log lines of a running job. They stay with the job however it is settled, unless it is deleted. A report
 * is ignored if its position is not open under the worker's token. The newest MAX_LOG_LINES lines are kept.
 */
export interface Report {
  readonly token: Token
  readonly position: number
  /** Null leaves the progress as it is. */
  readonly progress: Progress | null
  /** Appended to the existing lines. */
  readonly log: readonly JobLogLine[]
}

export type WakeUp =
  /** A queue has claimable jobs that it may not have had before. */
  | { readonly type: 'ready'; readonly queue: string }
  /** A job is due this soon. */
  | { readonly type: 'due'; readonly inMs: number }
  /** A cancel was requested for a running job of this worker; a heartbeat returns which. */
  | { readonly type: 'cancel'; readonly worker: WorkerId }
  /** A queue was paused: workers release claimed jobs that have not started. */
  | { readonly type: 'paused'; readonly queue: string }
  /** Under the offer of this number, a lease was handed to this worker. */
  | { readonly type: 'leased'; readonly worker: WorkerId; readonly nth: number; readonly lease: Lease }
