/**
 * What is known of every job: what was asked for, how it stands by the store's own moves, and what clients have been told.
 * One record a live job, so that a move costs one look-up for all rules; of a finished one only a few numbers are kept.
 * Dead jobs stay whole, because they may be replayed.
 */
import { Aging } from './aging.ts'
import type { EnqueuedJob, EnqueueReply, InvokeEvent, MoveEvent, SettlementType, State } from './history.ts'

/** One flush of enqueues, under whatever number of calls. */
export interface FlushFacts {
  readonly id: string
  readonly first: InvokeEvent
  /** Calls that may still act: under way, or without an answer. */
  possible: number
  /** As the first answer said. */
  replies: readonly EnqueueReply[] | null
}

export class Job {
  readonly id: string
  readonly spec: EnqueuedJob | null
  readonly flush: FlushFacts | null

  // By the store's moves.
  /** Null until it is born. */
  state: State | null = null
  queue = ''
  /** The newest lease; whether it is live, `state` tells. 0 is none. */
  token = 0
  worker: string | null = null
  attempt = 0
  crashes = 0
  dueAt = 0
  claimedAt = 0
  payload: string | null
  lastMove: MoveEvent | null = null
  settledToken = 0
  undeliveredToken = 0
  /** Leases that were taken away from their workers; null for the many that never lost one. */
  lostTokens: number[] | null = null
  replayedSeq = 0

  // By what clients were told or have asked for.
  acked = false
  startedToken = 0
  /** The newest lease that an answer told of, when, and whether anything may have ended it since. */
  seenToken = 0
  seenSeq = 0
  seenAt = 0
  mayHaveEnded = false
  rescuedSeq = 0
  /** Leases up to this one are over, and that was known at that time. */
  lostToken = 0
  lostSeq = 0
  writtenToken = 0
  /** When a client was told that it is final, by what settlement. */
  finalSeq = 0
  finalBy: SettlementType | null = null
  mayBeFinal = false
  cancelledSeq = 0

  constructor(id: string, spec: EnqueuedJob | null, flush: FlushFacts | null) {
    this.id = id
    this.spec = spec
    this.flush = flush
    this.payload = spec === null ? null : spec.payload
  }
}

/** What is left of a completed or cancelled job. */
export interface Finished {
  readonly state: 'completed' | 'cancelled'
  /** When it was known to be final, and when it may have been at the earliest. */
  readonly seq: number
  readonly t: number
  readonly earliestSeq: number
  readonly settledToken: number
  writtenToken: number
  readonly lostTokens: readonly number[] | null
  /** Whether its unique key is held for a time, whatever became of the job. */
  readonly timedKey: boolean
}

export class Book {
  readonly jobs = new Map<string, Job>()
  readonly finished = new Map<string, Finished>()
  readonly flushes = new Map<string, FlushFacts>()
  /** Pruned or discarded not long ago. */
  readonly forgotten = new Set<string>()
  readonly #memoryMs: number
  readonly #asked = new Aging<FlushFacts>()
  readonly #forgottenAging = new Aging<string>()

  constructor(memoryMs: number) {
    this.#memoryMs = memoryMs
  }

  /** Whether the job was ever there, as far as we remember. */
  knows(id: string): boolean {
    const job = this.jobs.get(id)
    return (job !== undefined && job.state !== null) || this.finished.has(id) || this.forgotten.has(id)
  }

  ask(event: InvokeEvent, flushId: string, specs: readonly EnqueuedJob[]): void {
    let flush = this.flushes.get(flushId)
    if (flush === undefined) {
      flush = { id: flushId, first: event, possible: 0, replies: null }
      this.flushes.set(flushId, flush)
    }
    flush.possible++
    for (const spec of specs) {
      if (this.jobs.has(spec.id) || this.finished.has(spec.id)) continue
      this.jobs.set(spec.id, new Job(spec.id, spec, flush))
    }
    this.#asked.add(event.t, flush)
    this.#forgetOld(event.t - this.#memoryMs)
  }

  #forgetOld(t: number): void {
    this.#asked.takeBefore(t, (flush) => {
      this.flushes.delete(flush.id)
      if (flush.first.call.kind !== 'enqueue') return
      for (const { id } of flush.first.call.jobs) {
        const job = this.jobs.get(id)
        if (job !== undefined && job.state === null && !job.acked && job.seenToken === 0) this.jobs.delete(id)
      }
    })
    this.#forgottenAging.takeBefore(t, (id) => this.forgotten.delete(id))
  }

  /** Takes a move in as the store tells it, whether it was right or not. */
  apply(event: MoveEvent, known: Job | undefined): Job | undefined {
    if (event.to === null) {
      this.#forget(event)
      return undefined
    }
    const job = known ?? this.#reborn(event)
    note(job, event)
    if (event.to === 'completed' || event.to === 'cancelled') this.#finish(job, event, event.to)
    return job
  }

  #forget({ job: id, t }: MoveEvent): void {
    this.jobs.delete(id)
    this.finished.delete(id)
    this.forgotten.add(id)
    this.#forgottenAging.add(t, id)
  }

  #reborn(event: MoveEvent): Job {
    const job = new Job(event.job, null, null)
    this.finished.delete(event.job)
    this.jobs.set(event.job, job)
    return job
  }

  #finish(job: Job, { seq, t, unique }: MoveEvent, state: 'completed' | 'cancelled'): void {
    const { settledToken, writtenToken, lostTokens } = job
    const timedKey = typeof unique?.hold === 'number'
    this.jobs.delete(job.id)
    this.finished.set(job.id, {
      state,
      seq,
      t,
      earliestSeq: seq,
      settledToken,
      writtenToken,
      lostTokens,
      timedKey,
    })
  }
}

function note(job: Job, event: MoveEvent): void {
  job.state = event.to
  job.queue = event.queue
  job.attempt = event.attempt
  job.crashes = event.crashes
  job.dueAt = event.dueAt
  job.lastMove = event
  if (event.by === 'claim') {
    job.token = event.token ?? 0
    job.worker = event.worker
    job.claimedAt = event.t
  } else if (event.by === 'settle') {
    job.settledToken = event.token ?? 0
  } else if (event.by === 'release-undelivered' || event.by === 'rescue') {
    if (event.by === 'release-undelivered') job.undeliveredToken = event.token ?? 0
    job.lostTokens ??= []
    job.lostTokens.push(event.token ?? 0)
  } else if (event.by === 'replace') {
    job.payload = event.payload ?? null
  } else if (event.by === 'replay') {
    job.replayedSeq = event.seq
    job.cancelledSeq = 0
  }
}

export function isFinal(state: State): boolean {
  return state === 'completed' || state === 'dead' || state === 'cancelled'
}

export function isWaiting(state: State): boolean {
  return state === 'scheduled' || state === 'blocked' || state === 'ready'
}
