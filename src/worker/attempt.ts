/**
 * One attempt at one job, from claim to settlement. It ends exactly once: by its handler, by being given up (the
 * handler ignores its abort), or by losing its lease, after which nothing of it is ever written.
 */
import type { CurrentJob } from '../core/current-job.ts'
import { Aborted, type AbortWhy } from '../errors.ts'
import type { AttemptEnd, AttemptFacts } from '../job/events.ts'
import type { Token, WorkerId } from '../job/ids.ts'
import type { Inherited } from '../job/new-job.ts'
import type { ClaimedJob } from '../job/record.ts'
import { LazyAbort } from '../std/abort.ts'
import type { CompletedSettlement } from '../stores/store.ts'
import type { BatchGroup } from './batch-group.ts'
import type { Batched } from './batched.ts'

/**
 * waiting: claimed, not started · running · settled: its outcome is on its way to the store, though the handler may
 * still be running · lost: its lease is gone
 */
export type AttemptPhase = 'waiting' | 'running' | 'settled' | 'lost'

export class Attempt implements CurrentJob, Batched {
  readonly job: ClaimedJob
  readonly token: Token
  readonly position: number
  readonly worker: WorkerId
  readonly claimedAt: number
  /** Local and monotonic: when the claim's answer arrived. */
  readonly receivedMs: number
  /** The same: when the claim was sent. */
  readonly askedMs: number
  readonly abort = new LazyAbort()
  phase: AttemptPhase = 'waiting'
  /** Undefined until its handler is started. */
  startedMs: number | undefined
  timeoutMs = 0
  /** When its timeout strikes, or Infinity once it has. */
  timeoutAtMs = Infinity
  /** Why it was told to end, if it was. */
  abortedFor: AbortWhy | undefined
  cancelReason: string | null = null
  /** With whom it was started, for a batch handler; undefined for a plain job. */
  batch: BatchGroup | undefined
  batchCall: Batched['batchCall']
  /**
   * From before its handler's commit is sent until that has failed: the commit may have ended its lease, so a lease that is
   * gone is no loss.
   */
  commits = false
  /** Set once its handler has committed: it is completed in the store, whatever comes after. */
  committed: CompletedSettlement | undefined
  #unhandled: { readonly reason: unknown } | undefined
  #onLateRejection: ((reason: unknown) => void) | undefined

  constructor(
    job: ClaimedJob,
    lease: { token: Token; claimedAt: number },
    position: number,
    worker: WorkerId,
    nowMs: number,
    askedMs = nowMs,
  ) {
    this.job = job
    this.token = lease.token
    this.claimedAt = lease.claimedAt
    this.position = position
    this.worker = worker
    this.receivedMs = nowMs
    this.askedMs = askedMs
  }

  get correlationId(): string {
    return this.job.envelope.correlationId ?? this.job.id
  }

  get inherited(): Inherited {
    return { correlationId: this.correlationId, metadata: this.job.envelope.metadata }
  }

  get facts(): AttemptFacts {
    const { id, name, queue, attempt, maxAttempts } = this.job
    return {
      id,
      job: name,
      queue,
      worker: this.worker,
      attempt,
      maxAttempts,
      correlationId: this.correlationId,
    }
  }

  get waitMs(): number {
    return Math.max(0, this.claimedAt - this.job.dueAt)
  }

  /** Spelled out, not spread: this is built for every job that ends. */
  end(durationMs: number): AttemptEnd {
    const { id, name, queue, attempt, maxAttempts } = this.job
    const { worker, correlationId, waitMs } = this
    return { id, job: name, queue, worker, attempt, maxAttempts, correlationId, waitMs, durationMs }
  }

  /** The handler starts now, and has this long. */
  begin(nowMs: number, timeoutMs: number): void {
    this.phase = 'running'
    this.startedMs = nowMs
    this.timeoutMs = timeoutMs
  }

  /** By the store's clock, as far as can be told: its claim, and what passed here since. */
  get startedAt(): number {
    return this.claimedAt + Math.max(0, (this.startedMs ?? this.receivedMs) - this.receivedMs)
  }

  runMs(nowMs: number): number {
    return this.startedMs === undefined ? 0 : nowMs - this.startedMs
  }

  /** What a promise left behind unhandled says, if one did while the handler ran. */
  get unhandledRejection(): { readonly reason: unknown } | undefined {
    return this.#unhandled
  }

  stop(why: AbortWhy, message: string): void {
    if (this.abortedFor !== undefined) return
    this.abortedFor = why
    const reason = new Aborted(why, message)
    this.abort.abort(reason)
    this.batch?.stopped(this, reason)
  }

  unhandled(reason: unknown): void {
    if (this.#onLateRejection === undefined) this.#unhandled ??= { reason }
    else this.#onLateRejection(reason)
  }

  /** The handler has returned: a rejection from now on cannot change the outcome any more. */
  returned(onLateRejection: (reason: unknown) => void): void {
    this.#onLateRejection = onLateRejection
  }
}
