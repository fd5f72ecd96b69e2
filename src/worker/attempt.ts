/**
 * One attempt at one job, from claim to settlement. It ends exactly once: when its handler returns, when the worker
 * gives up on a handler that ignores its abort signal, or when its lease is lost; then nothing is ever written for it.
 */
import type { ObservedAttempt } from '../core/instrumentation.ts'
import { Aborted, type AbortWhy } from '../errors.ts'
import type { JobDefinition } from '../job/definition.ts'
import type { AttemptEnd, AttemptFacts } from '../job/events.ts'
import type { Token, WorkerId } from '../job/ids.ts'
import type { Inherited } from '../job/new-job.ts'
import type { ClaimedJob } from '../job/record.ts'
import { LazyAbort } from '../std/abort.ts'
import type { CompletedSettlement } from '../stores/store.ts'
import type { Batched } from './batch-call.ts'
import type { BatchGroup } from './batch-group.ts'

/**
 * waiting: claimed, not started · running · settled: its settlement is being sent to the store, though the handler may
 * still be running · lost: its lease is gone
 */
export type AttemptPhase = 'waiting' | 'running' | 'settled' | 'lost'

/** Receives what an attempt leaves behind. */
export interface AttemptWatcher {
  /** A promise of the handler was rejected, unhandled, after the handler had returned. */
  lateRejection(attempt: Attempt, reason: unknown): void
}

export class Attempt implements ObservedAttempt, Batched {
  readonly job: ClaimedJob
  readonly token: Token
  readonly position: number
  readonly worker: WorkerId
  readonly claimedAt: number
  /** Local and monotonic: when the claim's answer arrived. */
  readonly receivedMs: number
  /** The same: when the claim was sent. */
  readonly askedMs: number
  phase: AttemptPhase = 'waiting'
  /** The job's definition in this process, once the attempt has begun; undefined for an unknown job. */
  definition: JobDefinition | undefined
  /** Undefined until its handler is started. */
  startedMs: number | undefined
  timeoutMs = 0
  /** When its timeout or its grace period ends; Infinity once that was acted on. */
  timeoutAtMs = Infinity
  /** Why its signal was aborted; undefined if it was not. */
  abortedFor: AbortWhy | undefined
  cancelReason: string | null = null
  /** The batch that this job is in; undefined for a plain job. */
  batch: BatchGroup | undefined
  batchCall: Batched['batchCall']
  /**
   * True from when its handler's commit is sent until that has failed: the commit may have ended its lease, so a missing
   * lease is no loss.
   */
  commits = false
  /** Set once its handler has committed: the job is completed in the store, whatever happens afterwards. */
  committed: CompletedSettlement | undefined
  #abort: LazyAbort | undefined
  #unhandled: { readonly reason: unknown } | undefined
  /** Set once the handler has returned: a rejection from then on cannot change the outcome. */
  #watcher: AttemptWatcher | undefined

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

  /** Created on first use: most handlers never use their signal. */
  get abort(): LazyAbort {
    this.#abort ??= new LazyAbort()
    return this.#abort
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

  /** The handler starts now and may run for `timeoutMs`. */
  begin(nowMs: number, timeoutMs: number, definition: JobDefinition | undefined): void {
    this.phase = 'running'
    this.definition = definition
    this.startedMs = nowMs
    this.timeoutMs = timeoutMs
  }

  /** By the store's clock, approximately: when it was claimed, plus the time that has passed here since. */
  get startedAt(): number {
    return this.claimedAt + Math.max(0, (this.startedMs ?? this.receivedMs) - this.receivedMs)
  }

  runMs(nowMs: number): number {
    return this.startedMs === undefined ? 0 : nowMs - this.startedMs
  }

  /** The reason of an unhandled rejection while the handler ran. */
  get unhandledRejection(): { readonly reason: unknown } | undefined {
    return this.#unhandled
  }

  /** Aborts the handler's signal. The first reason wins. */
  stop(why: AbortWhy, message: string): void {
    if (this.abortedFor !== undefined) return
    this.abortedFor = why
    const reason = new Aborted(why, message)
    this.abort.abort(reason)
    this.batch?.stopped(this, reason)
  }

  unhandled(reason: unknown): void {
    if (this.#watcher === undefined) this.#unhandled ??= { reason }
    else this.#watcher.lateRejection(this, reason)
  }

  /** The handler has returned. */
  returned(watcher: AttemptWatcher): void {
    this.#watcher = watcher
  }
}
