/** All that this store knows, and the moves that its methods are made of. */
import {
  crashOutcome,
  crashRecord,
  comesBack,
  isFinal,
  systemRandom,
  unknownSettlement,
  type AttemptError,
  type CrashOutcome,
  type Due,
  type EnqueueAnswer,
  type FinalState,
  type FlushId,
  type JobId,
  type Lease,
  type LeasePosition,
  type Settlement,
  type StoredState,
  type Token,
  type WakeUp,
  type WorkerId,
} from 'holdfast/store'
import { addRecord, claimedJob, holdsKey, type Ending, type LeaseRow, type Row } from './rows.ts'

export interface WorkerRow {
  leaseMs: number
  expiresAt: number
  atOnce: number | null
  /** Greatest number of a heartbeat so far. */
  nth: number
}

interface KeyHolder {
  readonly id: JobId
  readonly until: number | null
}

export class Book {
  readonly now: () => number
  readonly rows = new Map<JobId, Row>()
  /** Whether each queue is paused. */
  readonly queues = new Map<string, boolean>()
  readonly flushes = new Map<FlushId, { readonly at: number; readonly answers: readonly EnqueueAnswer[] }>()
  readonly workers = new Map<WorkerId, WorkerRow>()
  readonly leases = new Map<Token, LeaseRow>()
  readonly keys = new Map<string, KeyHolder>()
  readonly listeners = new Set<(hint: WakeUp) => void>()
  readonly #revoked = new Map<Token, readonly boolean[]>()
  #lastToken = 0

  constructor(now: () => number) {
    this.now = now
  }

  tell(hint: WakeUp): void {
    for (const listener of this.listeners) {
      try {
        listener(hint)
      } catch {
        // A listener's error must not fail the step that wakes it.
      }
    }
  }

  /** A time in the past means now: it must not buy a head start. */
  dueAt(due: Due): number {
    const now = this.now()
    return 'inMs' in due ? now + due.inMs : Math.max(now, due.atMs)
  }

  // ── moves ────────────────────────────────────────────────────────────────────

  /** The only way from one state to another: frees the unique key of a job that no longer holds it. */
  move(row: Row, to: StoredState): void {
    const { unique, id } = row.job
    row.state = to
    if (unique !== null && !holdsKey(row) && this.keys.get(unique.key)?.id === id)
      this.keys.delete(unique.key)
    if (to === 'ready') this.tell({ type: 'ready', queue: row.job.queue })
    if (to === 'scheduled') this.tell({ type: 'due', inMs: Math.max(0, row.dueAt - this.now()) })
  }

  wait(row: Row, dueAt: number): void {
    row.dueAt = dueAt
    this.move(row, dueAt > this.now() ? 'scheduled' : 'ready')
  }

  finish(row: Row, to: FinalState, parts: Partial<Ending> = {}): void {
    const nothing = { result: null, resultDropped: false, runMs: 0, reason: null, worker: null }
    row.end = { ...nothing, ...parts, at: this.now() }
    row.cancel = null
    this.move(row, to)
  }

  forget(row: Row): void {
    this.rows.delete(row.job.id)
  }

  // ── unique keys ──────────────────────────────────────────────────────────────

  holderOf(key: string): JobId | undefined {
    const holder = this.keys.get(key)
    return holder === undefined || (holder.until !== null && holder.until <= this.now())
      ? undefined
      : holder.id
  }

  takeKey({ job: { unique, id } }: Row): void {
    if (unique === null) return
    this.keys.set(unique.key, { id, until: 'forMs' in unique.hold ? this.now() + unique.hold.forMs : null })
  }

  // ── leases ───────────────────────────────────────────────────────────────────

  grant(worker: WorkerId, queue: string, rows: readonly Row[]): Lease {
    const token = ++this.#lastToken as Token
    const lease: LeaseRow = { token, worker, claimedAt: this.now(), open: [...rows] }
    this.leases.set(token, lease)
    for (const [position, row] of rows.entries()) {
      Object.assign(row, { lease, position, attempt: row.attempt + 1 })
      this.move(row, 'running')
    }
    return { token, queue, claimedAt: lease.claimedAt, jobs: rows.map(claimedJob) }
  }

  /** The job that is open at a position of this worker's lease, or why there is none. */
  openAt(worker: WorkerId, { token, position }: LeasePosition): Row | 'already' | 'lost' {
    const lease = this.leases.get(token)
    if (lease === undefined) {
      const settled = this.#revoked.get(token)
      if (settled !== undefined) return settled[position] === true ? 'already' : 'lost'
      return token >= 1 && token <= this.#lastToken ? 'already' : 'lost'
    }
    const row = lease.worker === worker ? lease.open[position] : undefined
    return row === undefined ? 'lost' : (row ?? 'already')
  }

  leasesOf(worker: WorkerId): LeaseRow[] {
    return [...this.leases.values()].filter((lease) => lease.worker === worker)
  }

  /** Takes the lease away from its worker. Returns the jobs that were open. */
  revoke(lease: LeaseRow): Row[] {
    this.#revoked.set(
      lease.token,
      lease.open.map((row) => row === null),
    )
    this.leases.delete(lease.token)
    return lease.open.filter((row) => row !== null)
  }

  // ── what becomes of a running job ────────────────────────────────────────────

  settle(row: Row, settlement: Settlement, by: { readonly worker: WorkerId; readonly runMs: number }): void {
    this.#close(row)
    const { cancel } = row
    if (cancel !== null && comesBack(settlement))
      return this.finish(row, 'cancelled', { reason: cancel.reason })
    switch (settlement.type) {
      case 'completed':
        return this.finish(row, 'completed', { ...by, ...settlement })
      case 'cancelled':
        return this.finish(row, 'cancelled', { reason: settlement.reason })
      case 'dead':
        row.error = settlement.error
        return this.finish(row, 'dead')
      case 'retry':
        return this.#later(row, settlement.delayMs, settlement.error)
      case 'snooze':
        row.attempt--
        return this.#later(row, settlement.delayMs, settlement.error)
      case 'release':
      case 'confirm':
        return this.#giveBack(row)
      default:
        return unknownSettlement(settlement)
    }
  }

  /** Ready in its old place; the attempt is handed back. */
  release(row: Row): void {
    this.#close(row)
    this.#giveBack(row)
  }

  #giveBack(row: Row): void {
    if (row.cancel !== null) return this.finish(row, 'cancelled', { reason: row.cancel.reason })
    row.attempt--
    this.move(row, 'ready')
  }

  /** The worker of this job was lost. */
  crashed(row: Row, { worker, claimedAt }: LeaseRow, mayHaveRun: boolean): CrashOutcome {
    const { attempt, crashes, cancel, job } = row
    const facts = {
      worker,
      attempt,
      crashes,
      maxCrashes: job.maxCrashes,
      cancelled: cancel !== null,
      mayHaveRun,
    }
    const outcome = crashOutcome(facts, systemRandom)
    const record = crashRecord(outcome.error, worker, claimedAt, this.now())
    if (record === null) {
      this.release(row)
      return outcome
    }
    this.#close(row)
    addRecord(row, record)
    row.crashes = outcome.crashes
    if (outcome.to === 'cancelled') this.finish(row, 'cancelled', { reason: cancel?.reason ?? null })
    else if (outcome.to === 'dead') {
      row.error = outcome.error
      this.finish(row, 'dead')
    } else {
      row.attempt--
      this.#later(row, outcome.delayMs, outcome.error)
    }
    return outcome
  }

  #later(row: Row, delayMs: number, error: AttemptError | null): void {
    row.error = error ?? row.error
    row.dueAt = this.now() + delayMs
    this.move(row, 'scheduled')
  }

  /** A lease ends with its last open position. */
  #close(row: Row): void {
    const { lease } = row
    if (lease === null || isFinal(row.state)) throw new Error(`Job ${row.job.id} is under no lease.`)
    lease.open[row.position] = null
    row.lease = null
    if (lease.open.every((one) => one === null)) this.leases.delete(lease.token)
  }
}
