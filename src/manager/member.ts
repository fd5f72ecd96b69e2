/** One running worker of this process, from the manager's view. */
import { hostname } from 'node:os'
import type { Core } from '../core/core.ts'
import type { ResolvedThresholds } from '../worker/health-thresholds.ts'
import type { WorkerSettings } from '../worker/options.ts'
import type { Worker } from '../worker/worker.ts'
import type { Waiting } from './backlog.ts'
import { History } from './history.ts'
import { problemsOf } from './rules.ts'
import type { NotedStatus } from './status.ts'

export interface MemberParts {
  readonly core: Core
  readonly worker: Pick<Worker, 'id' | 'counters' | 'health'>
  readonly settings: Pick<WorkerSettings, 'name' | 'weights' | 'jobs'>
  readonly thresholds: ResolvedThresholds
}

export class Member {
  readonly jobs: WorkerSettings['jobs']
  readonly name: string
  /** Key of its note in the store: the worker's first id, kept here even when it reregisters under another. */
  readonly noteId: string
  readonly queues: readonly string[]
  /** Result of the last evaluation. */
  problems: readonly string[] = []
  readonly #parts: MemberParts
  readonly #history: History
  readonly #startedMs: number

  constructor(parts: MemberParts) {
    this.#parts = parts
    this.name = parts.settings.name
    this.jobs = parts.settings.jobs
    this.noteId = parts.worker.id
    this.queues = [...parts.settings.weights.keys()]
    this.#startedMs = this.#nowMs
    this.#history = new History(this.#startedMs)
  }

  get id(): string {
    return this.#parts.worker.id
  }

  get stopping(): boolean {
    return this.#parts.worker.health().stopping
  }

  /** Samples the counters, for the figures about the last minutes. */
  sample(): void {
    this.#history.sample(this.#nowMs, this.#parts.worker.counters)
  }

  /** Its current problems, given the jobs that wait for it. */
  judge(waiting: Waiting | null): readonly string[] {
    const { worker, thresholds } = this.#parts
    const { counters } = worker
    const idleMs = this.#nowMs - (counters.lastMs ?? this.#startedMs)
    const recent = this.#history.recent(this.#nowMs, counters)
    return problemsOf({ health: worker.health(), idleMs, recent, waiting }, thresholds)
  }

  status(eventLoopLagMs: number): NotedStatus {
    const { worker, core } = this.#parts
    const { processed, failed, busyMs, lastMs } = worker.counters
    const { busy, slots, stopping } = worker.health()
    const nowMs = this.#nowMs
    // By the current wall clock, which may have been set meanwhile.
    const dateOf = (ms: number): Date => new Date(core.clock.now() - (nowMs - ms))
    return {
      name: this.name,
      id: worker.id,
      host: hostname(),
      pid: process.pid,
      state: stopping ? 'stopping' : 'running',
      queues: this.queues,
      slots,
      busy,
      processed,
      errors: failed,
      rate: this.#history.rate(nowMs, worker.counters),
      meanMs: processed === 0 ? null : busyMs / processed,
      lastProcessedAt: lastMs === null ? null : dateOf(lastMs),
      startedAt: dateOf(this.#startedMs),
      uptimeMs: nowMs - this.#startedMs,
      memoryBytes: process.memoryUsage.rss(),
      eventLoopLagMs,
      healthy: this.problems.length === 0,
      problems: this.problems,
      seenAt: dateOf(nowMs),
    }
  }

  get #nowMs(): number {
    return this.#parts.core.clock.monotonicMs()
  }
}
