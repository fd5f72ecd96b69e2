/** Writes the history: what the clients saw, what the store did, and what was done to them, in the checker's format. */
import type { WorkerId } from '../../src/job/ids.ts'
import type { NewJob } from '../../src/job/record.ts'
import type { JobState } from '../../src/job/states.ts'
import { rank, type Entry } from '../../src/stores/memory/entry.ts'
import type { MemoryState } from '../../src/stores/memory/state.ts'
import type { UniqueKeys } from '../../src/stores/memory/unique-keys.ts'
import type { Settlement } from '../../src/job/settlement.ts'
import type { SettleRequest } from '../../src/stores/store.ts'
import type {
  By,
  Call,
  EnqueuedJob,
  HistoryEvent,
  LeaseEvent,
  LeaseReply,
  Hold,
  MoveEvent,
  SettleCall,
  SettlementType,
} from '../checker/history.ts'
import { EPOCH_MS } from './process.ts'
import type { World } from './world.ts'

type Unstamped<Event> = Event extends HistoryEvent ? Omit<Event, 'seq' | 't'> : never

/** What the store is doing at this moment, so that a move can say what it is part of. */
interface Doing {
  readonly call: Call
}

export class Recorder {
  readonly #world: World
  readonly #sink: (event: HistoryEvent) => void
  readonly #running = new Map<string, { readonly token: number; readonly worker: string }>()
  readonly #leases = new Map<number, string[]>()
  readonly #handed = new Set<number>()
  readonly #payloads = new Map<string, string>()
  #seq = 0
  #op = 0
  #doing: Doing | undefined
  #keys: UniqueKeys | undefined
  #workers: MemoryState['leases']['workers'] | undefined

  constructor(world: World, sink: (event: HistoryEvent) => void) {
    this.#world = world
    this.#sink = sink
  }

  get events(): number {
    return this.#seq
  }

  /** The store's own books, to tell who holds a key after a move, and until when a lease lasts. */
  watch({ keys, leases }: MemoryState): void {
    this.#keys = keys
    this.#workers = leases.workers
  }

  /** A worker's lease as the store has it now. */
  lease(what: LeaseEvent['what'], worker: string): void {
    const expiresAt = this.#workers?.get(worker as WorkerId)?.expiresAt ?? null
    // A heartbeat of a worker that is gone renews nothing.
    if (what === 'renewed' && expiresAt === null) return
    this.write({
      type: 'lease',
      what,
      worker,
      expiresAt: what === 'retired' || what === 'gone' ? null : expiresAt,
    })
  }

  write(event: Unstamped<HistoryEvent>): void {
    this.#sink({ seq: this.#seq++, t: this.#now(), ...event })
  }

  #now(): number {
    return EPOCH_MS + this.#world.nowMs
  }

  /** A lease was handed over: to the checker, a claim. Returns what to call when it has arrived; null the second time. */
  handed(node: string, worker: WorkerId, lease: LeaseReply): (() => void) | null {
    // A process may listen more than once.
    if (this.#handed.has(lease.token)) return null
    this.#handed.add(lease.token)
    const op = this.nextOp()
    this.write({ type: 'invoke', op, node, call: { kind: 'cycle', worker, settles: [], claim: null } })
    const reply = { kind: 'cycle', alive: true, settled: [], leases: [lease] } as const
    return () => this.write({ type: 'answer', op, node, reply })
  }

  nextOp(): number {
    return this.#op++
  }

  /** Runs one step of the store; the moves that it makes are part of this call. */
  during<T>(call: Call, step: () => T): T {
    this.#doing = { call }
    try {
      return step()
    } finally {
      this.#doing = undefined
    }
  }

  settleCall({ token, position, settlement }: SettleRequest): SettleCall {
    return {
      token,
      position,
      job: this.#leases.get(token)?.[position] ?? 'unknown',
      to: recordedType(settlement),
    }
  }

  onMove(entry: Readonly<Entry>, from: JobState | null, to: JobState | null): void {
    const { job, lease, attempt, crashes, dueAt } = entry
    if (to === 'running' && lease !== null) {
      this.#running.set(job.id, { token: lease.token, worker: lease.worker })
      const ids = this.#leases.get(lease.token) ?? []
      ids[entry.position] = job.id
      this.#leases.set(lease.token, ids)
    }
    const by = this.#by(job, from, to)
    if (to === null) this.#payloads.delete(job.id)
    else this.#payloads.set(job.id, job.payload)
    const under = from === 'running' || to === 'running' ? this.#running.get(job.id) : undefined
    const settled = by === 'settle' ? this.#settleOf(job.id, under?.token) : undefined
    const move: Unstamped<MoveEvent> = {
      type: 'move',
      job: job.id,
      from,
      to,
      by,
      queue: job.queue,
      token: settled?.token ?? under?.token ?? null,
      worker: settled?.worker ?? under?.worker ?? null,
      attempt,
      crashes,
      rank: rank(entry),
      dueAt,
      unique: this.#unique(job),
      ...(settled === undefined ? {} : { settlement: settled.to }),
      ...(by === 'enqueue' || by === 'replace' ? { payload: job.payload } : {}),
    }
    this.write(move)
  }

  #by({ id, payload }: NewJob, from: JobState | null, to: JobState | null): By {
    const call = this.#doing?.call
    switch (call?.kind) {
      case 'enqueue':
        if (to === 'running') return 'claim'
        // Each enqueue has an intent of its own in its payload, so a replaced job shows by it.
        return from === null ? 'enqueue' : this.#payloads.get(id) === payload ? 'reschedule' : 'replace'
      case 'fire':
        return 'enqueue'
      case 'cycle':
        // Beyond its bound the store forgets the oldest finished job in the same step that finishes another.
        return to === null ? 'prune' : to === 'running' ? 'claim' : 'settle'
      case 'heartbeat':
        return 'release-undelivered'
      case 'rescue':
        return 'rescue'
      case 'promote':
        return 'promote'
      case 'cancel':
        return 'cancel'
      case 'prune':
        return 'prune'
      case 'change':
        return call.action
      case 'register':
      case 'retire':
      case 'pause':
      case 'resume':
      case 'other':
      case undefined:
        throw new Error(
          `job ${id} moved from ${String(from)} to ${String(to)} during ${call?.kind ?? 'nothing'}`,
        )
    }
  }

  /** What the caller presented. It may repeat an older settle of the same job beside the one that counts. */
  #settleOf(id: string, current: number | undefined): (SettleCall & { worker: string }) | undefined {
    const call = this.#doing?.call
    if (call?.kind !== 'cycle') return undefined
    const settles = call.settles.filter((one) => one.job === id)
    const settle = settles.find((one) => one.token === current) ?? settles[0]
    if (settle !== undefined) return { ...settle, worker: call.worker }
    // What was handed over and had not arrived is released by the next claim: its worker runs it no more.
    if (current === undefined) return undefined
    return { token: current, position: 0, job: id, to: 'release', worker: call.worker }
  }

  #unique({ id, unique }: NewJob): MoveEvent['unique'] {
    if (unique === null) return null
    return {
      key: unique.key,
      hold: holdOf(unique),
      held: this.#keys?.holderOf(unique.key, this.#now()) === id,
    }
  }
}

export function holdOf({ hold }: NonNullable<NewJob['unique']>): Hold {
  return 'forMs' in hold ? hold.forMs : hold.while
}

/** `intent`: what the application meant, where the payload does not say. */
export function enqueuedJob(job: NewJob, intent = intentOf(job)): EnqueuedJob {
  const { id, name, queue, priority, headStartMs, payload, due, unique } = job
  const spec =
    unique === null ? null : { key: unique.key, hold: holdOf(unique), onConflict: unique.onConflict }
  return { id, name, queue, priority, headStartMs, payload, due, unique: spec, intent }
}

function intentOf({ payload }: NewJob): string {
  return (JSON.parse(payload) as { intent: string }).intent
}

/** A confirm that finds its job open writes what a release writes. */
export function recordedType({ type }: Settlement): SettlementType {
  return type === 'confirm' ? 'release' : type
}
