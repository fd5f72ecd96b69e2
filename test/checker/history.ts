/**
 * The history format: what a run of Holdfast leaves behind for the checker. Every event is plain JSON, one a line if it
 * is kept in a file. The checker knows nothing of our code, so whoever runs jobs on whatever store emits this and is
 * judged by the same rules.
 *
 * ORDER AND TIME
 * - `seq` is a total order and strictly grows. `t` is the store's clock in ms and never goes back.
 * - A call is an `invoke`, later one `answer`, `failed` or `unknown` with the same `op` (a number used once). What a call
 *   did to the store stands between the two: invoke < its moves < answer. Only an `unknown` call may still act later.
 * - `failed`: the call certainly did nothing (the store refused it, or it was never sent). Whatever leaves a doubt (a
 *   deadline, a broken connection) is `unknown`. A call that never gets any of the three counts as unknown.
 *
 * NODES AND WORKERS
 * - A `node` is what is killed, frozen or cut off as a whole, with at most one worker in it. Give each worker of a process
 *   a node of its own. A `worker` is an incarnation, as the store knows it: a node may have many, one after another.
 *
 * THE STORE'S OWN EVENTS: `move`, `setting`, `lease`
 * - A history says in `begin.moves` whether it has them. Without, the rules check what the clients' events alone can show.
 * - `move`: one job went from one state to another. `from` is null at birth, `to` is null when it is forgotten (prune,
 *   discard). Emit one for *every* write that changes state, token, worker, attempt, crashes, rank, due time, queue,
 *   payload or unique key, also where the state stays (`replace`, `reschedule`). All fields tell how the job stands after
 *   the move; but `token` and `worker` of a move out of `running` name the lease it was under, and for `by: 'settle'` the
 *   ones that the caller presented. Elsewhere they are null. Tell what the store did, also if it should not have.
 *   A write that goes through steps inside the store (a replace, a replay) is one move, from where the job stood before.
 * - The moves of one claim come in order of rank, as their positions do.
 * - A handler's start comes after the answer to the claim that leased its job.
 * - `setting`: a queue was paused or resumed. Required with `moves`, also for one that changes nothing.
 * - `lease`: a worker's lease was made, renewed, given up (`retired`) or removed by a rescue (`gone`). Optional, for each
 *   worker all of them or none: without, the checker knows the expiry only between the bounds that calls give it.
 *
 * PAYLOADS may be texts or digests, as long as enqueue, move and run use the same.
 * AN END: the last events should be phase 'end' and then a `snapshot` of all jobs, taken when nothing is under way.
 */

export type State = 'scheduled' | 'blocked' | 'ready' | 'running' | 'completed' | 'dead' | 'cancelled'

export type HistoryEvent =
  | BeginEvent
  | InvokeEvent
  | AnswerEvent
  | FailedEvent
  | UnknownEvent
  | MoveEvent
  | SettingEvent
  | LeaseEvent
  | RunEvent
  | StopEvent
  | NodeEvent
  | StoreEvent
  | FaultEvent
  | PhaseEvent
  | SnapshotEvent

interface Stamp {
  readonly seq: number
  readonly t: number
}

/** The first event. */
export interface BeginEvent extends Stamp {
  readonly type: 'begin'
  readonly version: 1
  /** For people: 'memory', 'postgres' … */
  readonly store: string
  /** Whether the store's own events are on record. */
  readonly moves: boolean
  /** For people: how to get this history again. */
  readonly seed?: string
}

// ── calls ────────────────────────────────────────────────────────────────────

export interface InvokeEvent extends Stamp {
  readonly type: 'invoke'
  readonly op: number
  readonly node: string
  readonly call: Call
}

export interface AnswerEvent extends Stamp {
  readonly type: 'answer'
  readonly op: number
  readonly node: string
  /** Of the same kind as the call. */
  readonly reply: Reply
}

export interface FailedEvent extends Stamp {
  readonly type: 'failed'
  readonly op: number
  readonly node: string
  readonly error: string
}

export interface UnknownEvent extends Stamp {
  readonly type: 'unknown'
  readonly op: number
  readonly node: string
}

export type Call =
  | { readonly kind: 'enqueue'; readonly flush: string; readonly jobs: readonly EnqueuedJob[] }
  /** A tick of a schedule. `everyMs`: ticks come so often, and none may be left out; null where that is not promised. */
  | {
      readonly kind: 'fire'
      readonly schedule: string
      readonly tick: number
      readonly everyMs: number | null
      readonly job: EnqueuedJob
    }
  | { readonly kind: 'register'; readonly worker: string; readonly leaseMs: number }
  | { readonly kind: 'retire'; readonly worker: string }
  /** Settle and claim in one step, as workers do; either part may be empty. */
  | {
      readonly kind: 'cycle'
      readonly worker: string
      readonly settles: readonly SettleCall[]
      readonly claim: ClaimCall | null
    }
  | { readonly kind: 'heartbeat'; readonly worker: string; readonly undelivered: readonly number[] }
  | { readonly kind: 'promote' }
  | { readonly kind: 'rescue' }
  | { readonly kind: 'prune' }
  | { readonly kind: 'pause'; readonly queue: string }
  | { readonly kind: 'resume'; readonly queue: string }
  | { readonly kind: 'cancel'; readonly job: string }
  /** A bulk change; `jobs` is null where a filter without ids chose them. */
  | {
      readonly kind: 'change'
      readonly action: 'replay' | 'discard' | 'cancel'
      readonly jobs: readonly string[] | null
    }
  /** Anything else (lead, report, get …): counted, not judged. */
  | { readonly kind: 'other'; readonly what: string }

export type Reply =
  /** One for each job of the flush, in order. */
  | { readonly kind: 'enqueue'; readonly jobs: readonly EnqueueReply[] }
  | { readonly kind: 'fire'; readonly outcome: 'fired' | 'already' | 'missing' }
  | { readonly kind: 'register' | 'retire' | 'pause' | 'resume' | 'other' }
  | {
      readonly kind: 'cycle'
      readonly alive: boolean
      /** One for each settle of the call, in order. */
      readonly settled: readonly ('written' | 'already' | 'lost')[]
      readonly leases: readonly LeaseReply[]
    }
  | { readonly kind: 'heartbeat'; readonly alive: boolean; readonly tokens: readonly number[] }
  | { readonly kind: 'promote'; readonly promoted: number }
  | { readonly kind: 'rescue'; readonly workers: readonly string[]; readonly jobs: readonly RescuedJob[] }
  | { readonly kind: 'prune'; readonly pruned: number }
  | { readonly kind: 'cancel'; readonly outcome: 'cancelled' | 'requested' | 'heard' | 'final' | 'missing' }
  | { readonly kind: 'change'; readonly changed: number }

export interface EnqueuedJob {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly priority: number
  /** rank = due time − head start. */
  readonly headStartMs: number
  readonly payload: string
  readonly due: { readonly inMs: number } | { readonly atMs: number }
  readonly unique: UniqueSpec | null
  /**
   * Names the application's one call to enqueue that this job is for, however often and under whatever ids the client
   * sends it: an intent becomes one job at most.
   */
  readonly intent?: string
}

/** Held while the job waits to be claimed, until it is final, or for so many ms from the enqueue. */
export type Hold = 'ready' | 'unfinished' | number

export interface UniqueSpec {
  readonly key: string
  readonly hold: Hold
  readonly onConflict: 'ignore' | 'replace' | 'reschedule'
}

export interface EnqueueReply {
  readonly id: string
  readonly outcome: 'inserted' | 'duplicate' | 'replaced' | 'rescheduled'
}

export type SettlementType = 'completed' | 'retry' | 'dead' | 'snooze' | 'release' | 'cancelled'

export interface SettleCall {
  readonly token: number
  readonly position: number
  readonly job: string
  readonly to: SettlementType
}

export interface ClaimCall {
  readonly queue: string
  readonly limit: number
  readonly suspects: boolean
}

export interface LeaseReply {
  readonly token: number
  /** In order of position. */
  readonly jobs: readonly { readonly id: string; readonly attempt: number; readonly crashes: number }[]
}

export interface RescuedJob {
  readonly id: string
  readonly to: 'ready' | 'scheduled' | 'dead' | 'cancelled'
}

// ── the store's own events ───────────────────────────────────────────────────

/** `admit`: a limit let a blocked job through, or blocked it. */
export type By =
  | 'enqueue'
  | 'claim'
  | 'settle'
  | 'rescue'
  | 'promote'
  | 'admit'
  | 'cancel'
  | 'replay'
  | 'release-undelivered'
  | 'replace'
  | 'reschedule'
  | 'prune'
  | 'discard'

export interface MoveEvent extends Stamp {
  readonly type: 'move'
  readonly job: string
  readonly from: State | null
  readonly to: State | null
  readonly by: By
  readonly queue: string
  readonly token: number | null
  readonly worker: string | null
  readonly attempt: number
  readonly crashes: number
  readonly rank: number
  readonly dueAt: number
  /** `held`: whether the store counts the job as the key's holder after the move. */
  readonly unique: { readonly key: string; readonly hold: Hold; readonly held: boolean } | null
  /** What the caller asked for; with `by: 'settle'` only. */
  readonly settlement?: SettlementType
  /** With `by: 'enqueue'` and `by: 'replace'` only. */
  readonly payload?: string
}

export interface SettingEvent extends Stamp {
  readonly type: 'setting'
  readonly queue: string
  readonly paused: boolean
}

export interface LeaseEvent extends Stamp {
  readonly type: 'lease'
  readonly what: 'registered' | 'renewed' | 'retired' | 'gone'
  readonly worker: string
  /** By the store's clock; with `registered` and `renewed`, else null. */
  readonly expiresAt: number | null
}

// ── nodes ────────────────────────────────────────────────────────────────────

/** A handler starts or returns. `payload` is what the handler saw; with `start` only. */
export interface RunEvent extends Stamp {
  readonly type: 'run'
  readonly what: 'start' | 'end'
  readonly node: string
  readonly worker: string
  readonly job: string
  readonly token: number
  readonly attempt: number
  readonly payload?: string
}

/** A node's worker is told to stop, or has stopped. A second `begin` hurries: the shorter grace counts. */
export type StopEvent =
  | (Stamp & {
      readonly type: 'stop'
      readonly what: 'begin'
      readonly node: string
      readonly graceMs: number
    })
  | (Stamp & { readonly type: 'stop'; readonly what: 'end'; readonly node: string })

/** `stopped`: the process is over, in good order. `killed`: it is over, without a word. */
export type NodeEvent =
  | (Stamp & {
      readonly type: 'node'
      readonly what: 'started'
      readonly node: string
      /** The queues that its worker reads; empty for a node without a worker. */
      readonly queues: readonly string[]
      /** How many handlers it runs at once; 0 for a node without a worker. */
      readonly slots: number
      /** Whether it promotes, rescues and prunes. */
      readonly upkeep: boolean
    })
  | (Stamp & {
      readonly type: 'node'
      readonly what: 'stopped' | 'killed' | 'frozen' | 'thawed'
      readonly node: string
    })

/** The store cannot be reached, or can again: by anyone, or by one node. */
export interface StoreEvent extends Stamp {
  readonly type: 'store'
  readonly what: 'down' | 'up'
  readonly node?: string
}

/**
 * Something that was done on purpose (a request dropped, a reply delayed, a loop blocked …). Counted by kind. Liveness is
 * not demanded of the node it touched for a while; without a node, of nobody.
 */
export interface FaultEvent extends Stamp {
  readonly type: 'fault'
  readonly kind: string
  readonly node?: string
}

/** From 'healed' on nothing more is broken on purpose, and liveness is demanded in full. */
export interface PhaseEvent extends Stamp {
  readonly type: 'phase'
  readonly phase: 'faulty' | 'healed' | 'end'
}

/** All jobs of the store at this moment, and how many the store itself says there are. */
export interface SnapshotEvent extends Stamp {
  readonly type: 'snapshot'
  readonly jobs: readonly SnapshotJob[]
  /** Queue → state → count; a missing one means 0. Null where the store was not asked. */
  readonly counters: Readonly<Record<string, Readonly<Partial<Record<State, number>>>>> | null
}

export interface SnapshotJob {
  readonly id: string
  readonly queue: string
  readonly state: State
  readonly attempt: number
  readonly crashes: number
  /** While running, else null. */
  readonly token: number | null
  readonly worker: string | null
}
