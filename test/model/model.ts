/**
 * What a store should do, in the simplest form: lists that are searched from end to end, and rules taken from the comments
 * of `store.ts`. It shares no code with any store, so they cannot agree on a mistake.
 *
 * If the contract leaves a choice (`loose`), the model lists the allowed outcomes, checks that the store chose one of them,
 * and adopts it.
 */
import assert from 'node:assert/strict'
import type { AttemptError } from '../../src/job/failure.ts'
import { makeIds, type FlushId, type Ids, type JobId, type Token, type WorkerId } from '../../src/job/ids.ts'
import type { AttemptRecord, ClaimedJob, JobLogLine, NewJob, Progress } from '../../src/job/record.ts'
import type { Settlement } from '../../src/job/settlement.ts'
import { isFinal, isWaiting, type JobState } from '../../src/job/states.ts'
import { seededRandom } from '../../src/std/random.ts'
import {
  FLUSH_MEMORY_MS,
  MAX_LOG_LINES,
  type EnqueueAnswer,
  type Lease,
  type Report,
  type SettleAnswer,
  type SettleRequest,
  type StoredSchedule,
} from '../../src/stores/store.ts'
import { ModelKeys } from './keys.ts'

export interface ModelJob {
  facts: NewJob
  state: JobState
  attempt: number
  crashes: number
  createdAt: number
  dueAt: number
  error: AttemptError | null
  attempts: readonly AttemptRecord[]
  log: readonly JobLogLine[]
  progress: Progress | null
  lease: { readonly token: Token; readonly worker: WorkerId; readonly claimedAt: number } | null
  /** Reasons given by cancels of the running job; the contract does not say which of several stays. */
  cancelReasons: (string | null)[]
  /** Whether its worker has reported that the cancel took effect. */
  heard: boolean
  finishedAt: number
  result: string | null
  resultDropped: boolean
  runMs: number
  /** Who settled it last. */
  settledBy: WorkerId | null
  reason: string | null
  lastToken: number
  /** Fields that may hold one of several values when the record is looked at next. */
  loose: Partial<
    Record<'state' | 'attempt' | 'crashes' | 'error' | 'progress' | 'reason', readonly unknown[]>
  >
  /** Where chance decides the due time: the bounds of it. */
  dueBetween: readonly [low: number, high: number] | null
}

export interface ModelWorker {
  readonly id: WorkerId
  leaseMs: number
  expiresAt: number
  /** Known to the store. */
  registered: boolean
  /** How many of its open jobs can be running, as it told last; null: all of them. */
  atOnce: number | null
  /** How many of these were rescued since, by queue where the store counts by queue. */
  readonly rescued: Map<string, number>
  /** The process has crashed: it never calls again, but a zombie may. */
  stopped: boolean
}

export interface ModelLease {
  readonly token: Token
  readonly worker: WorkerId
  readonly ids: readonly JobId[]
  readonly positions: ('open' | 'settled' | 'revoked')[]
  /** Whether the worker got the claim's answer. */
  known: boolean
  endedAt: number | null
}

export interface ModelFlush {
  readonly id: FlushId
  readonly jobs: readonly NewJob[]
  /** What the store answered, and when; null while every request was lost. */
  first: { readonly answers: readonly EnqueueAnswer[]; readonly at: number } | null
}

export interface OldSettle {
  readonly worker: WorkerId
  readonly request: SettleRequest
}

export interface ModelOptions {
  readonly startsByQueue?: boolean
}

export class Model {
  now: number
  readonly ids: Ids
  readonly jobs = new Map<JobId, ModelJob>()
  /** Ids that must read as null: pruned, discarded, or never written because a key was held. */
  readonly absent = new Set<JobId>()
  readonly workers: ModelWorker[] = []
  readonly leases: ModelLease[] = []
  readonly flushes: ModelFlush[] = []
  readonly oldSettles: OldSettle[] = []
  readonly keys: ModelKeys
  readonly paused = new Set<string>()
  readonly queues = new Set<string>()
  readonly schedules = new Map<string, StoredSchedule>()
  leader: { readonly id: WorkerId; readonly untilMs: number } | null = null
  commandsRun = 0

  /** Whether the order of starts is counted queue by queue: then more jobs of a lost worker can have been running. */
  readonly startsByQueue: boolean

  constructor(startMs: number, { startsByQueue = false }: ModelOptions = {}) {
    this.now = startMs
    this.startsByQueue = startsByQueue
    this.ids = makeIds({ now: () => this.now }, seededRandom(7))
    this.keys = new ModelKeys(this)
  }

  job(id: JobId): ModelJob {
    return this.jobs.get(id) ?? assert.fail(`the model has no job ${id}`)
  }

  inState(...states: readonly JobState[]): ModelJob[] {
    return [...this.jobs.values()].filter((job) => states.includes(job.state))
  }

  /** The store says that it is this late by now. */
  sawTime(timeMs: number): void {
    this.now = Math.max(this.now, timeMs)
  }

  // ── enqueue ────────────────────────────────────────────────────────────────

  insert(facts: NewJob): ModelJob {
    const { due } = facts
    const dueAt = 'inMs' in due ? this.now + due.inMs : Math.max(due.atMs, this.now)
    const job: ModelJob = {
      facts,
      state: dueAt > this.now ? 'scheduled' : 'ready',
      attempt: 0,
      crashes: 0,
      createdAt: this.now,
      dueAt,
      error: null,
      attempts: [],
      log: [],
      progress: null,
      lease: null,
      cancelReasons: [],
      heard: false,
      finishedAt: 0,
      result: null,
      resultDropped: false,
      runMs: 0,
      settledBy: null,
      reason: null,
      lastToken: 0,
      loose: {},
      dueBetween: null,
    }
    this.jobs.set(facts.id, job)
    this.queues.add(facts.queue)
    return job
  }

  /** Moves a waiting job to the due time that a new enqueue asks for. */
  moveDue(job: ModelJob, due: NewJob['due']): void {
    job.dueAt = 'inMs' in due ? this.now + due.inMs : Math.max(due.atMs, this.now)
    job.state = job.dueAt > this.now ? 'scheduled' : 'ready'
  }

  // ── claim ──────────────────────────────────────────────────────────────────

  /** Ready jobs of a queue, in the order in which they must be handed out. */
  line(queue: string, suspects: boolean): ModelJob[] {
    return this.inState('ready')
      .filter((job) => job.facts.queue === queue && job.crashes > 0 === suspects)
      .toSorted((a, b) => rank(a) - rank(b) || (a.facts.id < b.facts.id ? -1 : 1))
  }

  grant(worker: WorkerId, lease: Lease, known: boolean): void {
    const { token, claimedAt } = lease
    assert.ok(!this.leases.some((other) => other.token === token), `token ${token} was handed out before`)
    for (const { id } of lease.jobs) {
      const job = this.job(id)
      assert.ok(
        token > job.lastToken,
        `token ${token} is greater than the last one of the job, ${job.lastToken}`,
      )
      job.lastToken = token
      job.state = 'running'
      job.attempt++
      job.lease = { token, worker, claimedAt }
      this.keys.claimed(job.facts)
    }
    const ids = lease.jobs.map((job) => job.id)
    this.leases.push({ token, worker, ids, positions: ids.map(() => 'open'), known, endedAt: null })
  }

  // ── settle ─────────────────────────────────────────────────────────────────

  leaseOf(token: Token): ModelLease | undefined {
    return this.leases.find((lease) => lease.token === token)
  }

  /** What a settle may be answered with; more than one only where the contract leaves it open. */
  settleAnswers(worker: WorkerId, { token, position }: SettleRequest): readonly SettleAnswer[] {
    const lease = this.leaseOf(token)
    if (lease === undefined) return ['lost']
    const over = !lease.positions.includes('open')
    const at = lease.positions[position]
    if (at === 'revoked') return ['lost']
    // Who is wrong about a lease that is over hears one or the other; either way nothing is written.
    if (lease.worker !== worker || at === undefined) return over ? ['lost', 'already'] : ['lost']
    if (at === 'open') return ['written']
    const longAgo = lease.endedAt !== null && this.now - lease.endedAt > FLUSH_MEMORY_MS / 2
    return lease.positions.includes('revoked') || longAgo ? ['already', 'lost'] : ['already']
  }

  /** Applies a settle that the store says it has written. */
  settle({ token, position, settlement, runMs, record, keepRecords = 100 }: SettleRequest): ModelJob {
    const lease = this.leaseOf(token) ?? assert.fail(`the model has no lease ${token}`)
    const job = this.job(lease.ids[position] ?? assert.fail(`lease ${token} has no position ${position}`))
    this.leave(lease, position, 'settled')
    job.lease = null
    job.settledBy = lease.worker
    if (record) job.attempts = keepRecords === 0 ? [] : [...job.attempts, record].slice(-keepRecords)
    const comesBack = ['retry', 'snooze', 'release', 'confirm'].includes(settlement.type)
    if (job.cancelReasons.length > 0 && comesBack) this.cancelInstead(job, settlement)
    else this.write(job, settlement, runMs)
    return job
  }

  leave(lease: ModelLease, position: number, as: 'settled' | 'revoked'): void {
    lease.positions[position] = as
    if (!lease.positions.includes('open')) lease.endedAt = this.now
  }

  write(job: ModelJob, settlement: Settlement, runMs: number): void {
    switch (settlement.type) {
      case 'completed':
        this.finish(job, 'completed')
        job.result = settlement.result
        job.resultDropped = settlement.resultDropped
        job.runMs = runMs
        return
      case 'dead':
        this.finish(job, 'dead')
        job.error = settlement.error
        return
      case 'cancelled':
        if (job.cancelReasons.length > 0) job.loose.reason = [settlement.reason, ...job.cancelReasons]
        job.reason = settlement.reason
        this.finish(job, 'cancelled')
        return
      case 'retry':
        return this.wait(job, settlement.delayMs, settlement.error)
      case 'snooze':
        job.attempt--
        return this.wait(job, settlement.delayMs, settlement.error ?? job.error)
      case 'release':
      case 'confirm':
        return this.release(job)
    }
  }

  /** A cancel was asked for: the job ends instead of coming back. Whether its attempt counts is not said. */
  cancelInstead(job: ModelJob, settlement: Settlement | null): void {
    const failed = settlement?.type === 'retry' || settlement?.type === 'snooze' ? settlement.error : null
    job.loose.attempt = [job.attempt, job.attempt - 1]
    job.loose.error = [job.error, failed ?? job.error]
    job.loose.reason = [...job.cancelReasons]
    this.finish(job, 'cancelled')
  }

  release(job: ModelJob): void {
    job.lease = null
    if (job.cancelReasons.length > 0) return this.cancelInstead(job, null)
    job.attempt--
    job.state = 'ready'
    this.looseProgress(job)
  }

  wait(job: ModelJob, delayMs: number, error: AttemptError | null): void {
    job.state = 'scheduled'
    job.dueAt = this.now + delayMs
    job.error = error
    this.looseProgress(job)
  }

  /** Whether the next attempt starts with the progress of the last is not said. */
  looseProgress(job: ModelJob): void {
    job.loose.progress = [job.progress, null]
  }

  finish(job: ModelJob, to: 'completed' | 'dead' | 'cancelled'): void {
    job.state = to
    job.finishedAt = this.now
    job.lease = null
    job.cancelReasons = []
    job.heard = false
  }

  report(worker: WorkerId, { token, position, progress, log }: Report): JobId | null {
    const lease = this.leaseOf(token)
    if (lease?.worker !== worker || lease.positions[position] !== 'open') return null
    const job = this.job(lease.ids[position] ?? assert.fail('an open position has a job'))
    if (progress !== null) job.progress = progress
    job.log = [...job.log, ...log].slice(-MAX_LOG_LINES)
    return job.facts.id
  }

  // ── workers ────────────────────────────────────────────────────────────────

  worker(id: WorkerId): ModelWorker {
    return this.workers.find((worker) => worker.id === id) ?? assert.fail(`the model has no worker ${id}`)
  }

  openLeases(worker: WorkerId): ModelLease[] {
    return this.leases.filter((lease) => lease.worker === worker && lease.positions.includes('open'))
  }

  /** Leases that a rescue may take: their worker is expired or missing. */
  orphans(): ModelLease[] {
    const lives = (id: WorkerId): boolean => {
      const { registered, expiresAt } = this.worker(id)
      return registered && expiresAt > this.now
    }
    return this.leases.filter((lease) => lease.positions.includes('open') && !lives(lease.worker))
  }

  /** Ends a job's place in its lease without a settle. */
  revoke(job: ModelJob): ModelLease {
    const lease = this.leaseOf(job.lease?.token ?? assert.fail(`job ${job.facts.id} is not running`))
    assert.ok(lease !== undefined)
    this.leave(lease, lease.ids.indexOf(job.facts.id), 'revoked')
    job.lease = null
    return lease
  }

  forget(job: ModelJob): void {
    assert.ok(isFinal(job.state), 'only final jobs are forgotten')
    this.jobs.delete(job.facts.id)
    this.absent.add(job.facts.id)
  }

  waits(id: JobId): boolean {
    const job = this.jobs.get(id)
    return job !== undefined && isWaiting(job.state)
  }
}

function rank(job: ModelJob): number {
  return job.dueAt - job.facts.headStartMs
}

/** A job as a claim hands it out. */
export function claimedOf(job: ModelJob): ClaimedJob {
  const { due: _due, unique: _unique, ...facts } = job.facts
  const { attempt, crashes, createdAt, dueAt } = job
  return { ...facts, attempt, crashes, createdAt, dueAt }
}
