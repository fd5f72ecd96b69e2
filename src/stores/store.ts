/**
 * The contract between Holdfast and a store: a small core that every enqueue and every worker uses, and the facets in
 * `facets.ts`: upkeep, schedules, notes and administration; one more, for the callers' own transactions, is not in
 * every store. `conformance/` is the contract as tests.
 *
 * Every method is one atomic step: it happens wholly or not at all, and a caller that got no answer may repeat the
 * call. Only the store's clock compares times. No method waits for work; `subscribe` tells when to look again.
 *
 * A caller that breaks the contract itself (a flush beyond `MAX_BATCH`, an id that exists already, a settlement of an
 * unknown kind: HF_STORE_CONTRACT) is refused before anything is written, and so is a call with a value that the store
 * cannot hold (HF_STORE_REFUSED). Other permanent errors have codes of their own, too: HF_STORE_DENIED, HF_STORE_MISSING,
 * HF_BAD_CURSOR; a store without room answers HF_STORE_FULL. Whatever else is thrown is taken for an outage. Claims take only what is ready; only `promote` moves a due job there.
 *
 * Leases. A worker incarnation is registered with a lease that heartbeats renew. A claim takes due jobs and puts them
 * under a token; that lease record is the fence: whoever presents the token settles, until a rescue takes the lease
 * away. An expired worker keeps settling and may even be renewed; expiry only permits rescue. A rescued lease never
 * settles anything again, and a claim by a worker that is gone takes nothing and says `alive: false`.
 *
 * Starts. The store is not told when a handler starts. Two promises of the worker stand in for that:
 * - It starts a job only within `START_WITHIN_MS` of sending the claim that brought it, or a heartbeat that was answered
 *   since. Claims and heartbeats therefore carry everything that may forbid a start: cancels and pauses. Wake-ups only
 *   make this faster. `START_WITHIN_MS` after a cancel was answered, no handler starts that job, even if every wake-up
 *   was lost or the worker's process was frozen. A worker that gets its answers later than that takes more time, up to
 *   `LONGEST_START_MS`. It puts a note of the kind `SLOW_WORKER` first, which says how much, and takes the time only for
 *   what it asks after that was answered.
 * - It starts a job only while fewer than `atOnce` open jobs stand before it in the order (token, position) of the
 *   worker's leases. So only the first `atOnce` open jobs of a lost worker can have been running. A store that keeps
 *   queues apart may count each queue on its own.
 */
import type { Token, WorkerId } from '../job/ids.ts'
import type { AttemptRecord, ClaimedJob, JobLogLine, Progress } from '../job/record.ts'
import type { Settlement } from '../job/settlement.ts'
import type { Admin, Notes, Schedules, Transactions, Upkeep } from './facets.ts'
import type { EnqueueAnswer, Flush } from './flush.ts'

export type * from './facets.ts'
export { MAX_SCAN } from './facets.ts'
export type * from './flush.ts'

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
  /**
   * Makes an incarnation known; it lives until its lease expires and a rescue finds it, or until it retires. `atOnce`:
   * see "Starts" above; without it, every job that the worker holds may be running. Registering again renews the lease
   * and leaves that number as it is: the call may be a repeat that arrives after heartbeats.
   */
  register(worker: WorkerId, leaseMs: number, atOnce?: number): Promise<void>
  /** Forgets the incarnation. Leases it still holds become rescuable at once. */
  retire(worker: WorkerId): Promise<void>
  /** Keeps reports, then settles, then claims, in one step. Any part may be empty. Settles are answered even if `alive` is false. */
  cycle(request: CycleRequest): Promise<CycleAnswer>
  /** Renews the lease of a worker that is not rescued, and tells what it should know; nothing at all for one that is. */
  heartbeat(request: HeartbeatRequest): Promise<HeartbeatAnswer>
  /**
   * Where leases expire: renews this one from outside the event loop, so that a handler that blocks it does not lose its
   * jobs. Begins at once and never throws; null where that cannot be. Heartbeats go on as they do, and what fails here
   * costs nothing but this help. A store whose leases outlast a blocked loop anyway does not have it.
   */
  keepAlive?(worker: WorkerId, leaseMs: number): Pulse | null
  /** Best effort: hints may be late, doubled or lost, so a listener also polls. Resolves to how to stop. */
  subscribe(listener: (hint: WakeUp) => void): Promise<() => Promise<void>>

  readonly upkeep: Upkeep
  readonly schedules: Schedules
  readonly notes: Notes
  readonly admin: Admin
  /** Missing where callers cannot have a transaction on the store's data: then `{ tx }` is refused. */
  readonly transactions?: Transactions
}

/** A worker starts a claimed job at most this long after it last asked the store about it. */
export const START_WITHIN_MS = 800
/** The most that a worker takes instead if the store answers slowly. */
export const LONGEST_START_MS = 10_000
/** The kind of note in which such a worker says how many milliseconds it takes. */
export const SLOW_WORKER = 'slow-worker'
/** How long a store remembers a flush: far longer than any client keeps repeating one. */
export const FLUSH_MEMORY_MS = 600_000
/** A request that has not reached the store this long after its caller gave it up never will. */
export const LATEST_ARRIVAL_MS = 600_000
/** The most jobs in one flush, one claim or one settle. */
export const MAX_BATCH = 1_000
/** The most log lines kept of one job; the oldest go first. */
export const MAX_LOG_LINES = 100
/** The most attempts of one job that are remembered; the oldest go first. */
export const MAX_ATTEMPT_RECORDS = 100

export interface CycleRequest {
  readonly worker: WorkerId
  readonly settle: readonly SettleRequest[]
  readonly claim: ClaimRequest | null
  /** Missing if there are none, as in nearly every cycle. */
  readonly reports?: readonly Report[]
}

/** One position of a lease and what to write there. */
export interface SettleRequest {
  readonly token: Token
  readonly position: number
  readonly settlement: Settlement
  /** How long the handler ran. */
  readonly runMs: number
  /** Of a job that ends completed or dead nothing is kept. */
  readonly forget?: boolean
  /**
   * Kept with the job behind those that are there, whatever the settlement turns out to be; none for an attempt that
   * leaves no trace. Of a job that is completed, its record tells of the last attempt.
   */
  readonly record?: AttemptRecord | null
  /** How many records the job keeps at most, this one among them: the newest. @default MAX_ATTEMPT_RECORDS */
  readonly keepRecords?: number
  /** For `release` and `confirm`: the job as it was claimed. It tells a store where to find the job if it comes back. */
  readonly job?: ClaimedJob
}

/**
 * `written`: by this call. `already`: this position was settled before, by a repeat or a crossing call; nothing was
 * changed. `lost`: the lease is not this worker's any more; nothing was changed. A lease that was settled to its end is
 * answered with `already` for `FLUSH_MEMORY_MS` at least; one that was revoked, with `lost` for ever (or with `already`
 * for the positions that had been settled before). After a crash of its server, a store that can't tell answers `lost`.
 *
 * Of a job whose cancel was requested, a settlement that would bring it back (retry, snooze, release, confirm) writes
 * cancelled instead; completed and dead stay what they are.
 *
 * A `confirm` is answered `already` if the commit that it confirms is there, and `written` if it was lost.
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
  /**
   * Cancels that took effect here: the handler is running and its signal has fired. The store doesn't report them again,
   * and `Admin.cancel` answers `heard`. A job that was not started is settled instead.
   */
  readonly heard?: readonly LeasePosition[]
  /** Replaces the number given to `register`, from this call on. Unchanged if missing. */
  readonly atOnce?: number
  /**
   * Number of this heartbeat, greater than that of every heartbeat which the incarnation sent before. `atOnce` is ignored
   * if a heartbeat with a greater number was there first: requests may arrive late and in any order.
   */
  readonly nth?: number
}

export interface LeasePosition {
  readonly token: Token
  readonly position: number
}

export interface HeartbeatAnswer {
  readonly alive: boolean
  /** All leases in this worker's name, as the store sees them. */
  readonly tokens: readonly Token[]
  /** Cancels of open jobs that the worker has not reported as heard. */
  readonly cancelled: readonly CancelNotice[]
  /** Paused queues, at least those that this worker holds jobs of. */
  readonly paused: readonly string[]
}

export interface CancelNotice extends LeasePosition {
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

/**
 * Progress and log lines of a running job. They stay with the job, whatever it is settled as, unless it is forgotten. A
 * report is ignored if its position is not open under the worker's token. The newest MAX_LOG_LINES lines are kept.
 */
export interface Report {
  readonly token: Token
  readonly position: number
  /** Null leaves the progress as it is. */
  readonly progress: Progress | null
  /** Appended to the lines that are there. */
  readonly log: readonly JobLogLine[]
}

export type WakeUp =
  /** A queue has claimable jobs that it may not have had before. */
  | { readonly type: 'ready'; readonly queue: string }
  /** A job falls due this soon. */
  | { readonly type: 'due'; readonly inMs: number }
  /** A running job of this worker is to be cancelled: a heartbeat tells which. */
  | { readonly type: 'cancel'; readonly worker: WorkerId }
  /** A queue was paused: workers give back what they have claimed from it and not started. */
  | { readonly type: 'paused'; readonly queue: string }
