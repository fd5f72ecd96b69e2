/** `hf.health`: what is wrong with the workers of this process, and what the user's own checks say. */
import type { Core } from '../core/core.ts'
import { Aborted, HoldfastError } from '../errors.ts'
import { duration } from '../job/duration.ts'
import { readName } from '../job/name.ts'
import { fn, readersFor, readOptions } from '../job/options.ts'
import type { Duration } from '../std/duration.ts'
import { Backlog } from './backlog.ts'
import { Check, type CheckFunction, type CheckResult } from './check.ts'
import type { Roster } from './roster.ts'

export interface CheckOptions {
  /** Timeout of a run; at most 5m. @default '5s' */
  readonly timeout?: Duration
}

export interface WorkerVerdict {
  readonly name: string
  /** Null for a worker that could not be started. */
  readonly id: string | null
  readonly healthy: boolean
  /** A sentence for each problem. */
  readonly problems: readonly string[]
}

export interface HealthReport {
  /** Whether all workers and checks are healthy. */
  readonly healthy: boolean
  readonly workers: readonly WorkerVerdict[]
  readonly checks: readonly CheckResult[]
}

/** `hf.health` */
export interface Health {
  /**
   * Adds your own check: unhealthy if it throws, returns false, or returns a string that describes the problem. It runs
   * in each report, and every 30 s while a worker runs. Returns a function that removes it.
   */
  check(name: string, check: CheckFunction, options?: CheckOptions): () => void
  /** Current health of this process's workers and checks. For other processes: `hf.workers.status()`. */
  report(): Promise<HealthReport>
}

const DEFAULT_TIMEOUT_MS = 5_000
const FIELDS = readersFor<CheckOptions>()({ timeout: duration({ maxMs: 300_000 }) })
const BACKLOG_TIMEOUT_MS = 3_000

export class HealthDesk implements Health {
  readonly #core: Core
  readonly #roster: Roster
  /** Workers that should be running and are not. */
  readonly #missing: () => readonly WorkerVerdict[]
  readonly #checks = new Map<string, Check>()
  #closed = false

  constructor(core: Core, roster: Roster, missing: () => readonly WorkerVerdict[]) {
    this.#core = core
    this.#roster = roster
    this.#missing = missing
  }

  check(name: string, run: CheckFunction, options: CheckOptions = {}): () => void {
    readName(name, 'health.check(name)')
    fn()(run, `health.check("${name}")`)
    const { timeout = DEFAULT_TIMEOUT_MS } = readOptions(options, 'health.check()', FIELDS)
    const check = new Check(name, run, timeout)
    if (this.#checks.has(name))
      throw new HoldfastError('HF_DUPLICATE_CHECK', `There is already a check named "${name}".`)
    this.#checks.set(name, check)
    return () => {
      // A check that has taken the name since the removal stays.
      if (this.#checks.get(name) !== check) return
      this.#checks.delete(name)
      check.callOff(new Aborted('cancelled', 'The check was removed.'))
    }
  }

  async report(): Promise<HealthReport> {
    if (this.#closed)
      throw new HoldfastError('HF_CLOSED', 'This Holdfast is closed: could not report health.')
    const [running, checks] = await Promise.all([this.judgeWorkers(), this.runChecks()])
    const workers = [...running, ...this.#missing()]
    return { healthy: [...workers, ...checks].every((one) => one.healthy), workers, checks }
  }

  /** Never rejects: if the store does not answer, the workers' own calls report it. */
  async judgeWorkers(): Promise<WorkerVerdict[]> {
    const { members } = this.#roster
    const backlog = members.length === 0 ? null : await this.#backlog()
    return members.map((member) => {
      const problems = member.judge(backlog?.in(member.queues) ?? null)
      const wasHealthy = member.problems.length === 0
      member.problems = problems
      const { name, id } = member
      this.#tell('worker', name, id, wasHealthy, problems)
      return { name, id, healthy: problems.length === 0, problems }
    })
  }

  #backlog(): Promise<Backlog | null> {
    return Backlog.read(this.#core, BACKLOG_TIMEOUT_MS).catch((error: unknown) => {
      this.#core.connection.report('count waiting jobs', error)
      return null
    })
  }

  /** Never rejects. */
  async runChecks(): Promise<CheckResult[]> {
    const results = await Promise.all([...this.#checks.values()].map((check) => this.#ask(check)))
    return results.filter((result) => result !== null)
  }

  /** Null if the check was removed meanwhile. */
  async #ask(check: Check): Promise<CheckResult | null> {
    const result = await check.ask(this.#core.clock)
    if (this.#checks.get(check.name) !== check) return null
    const { name, message } = result
    const wasHealthy = check.message === null
    check.message = message
    this.#tell('check', name, null, wasHealthy, message === null ? [] : [message])
    return result
  }

  #tell(
    kind: 'worker' | 'check',
    name: string,
    worker: string | null,
    wasHealthy: boolean,
    problems: readonly string[],
  ): void {
    const healthy = problems.length === 0
    if (healthy === wasHealthy) return
    this.#core.events.emit('health.changed', { kind, name, worker, healthy, problems })
  }

  /** Ends all checks; no further event is emitted for them. */
  close(): void {
    this.#closed = true
    const checks = [...this.#checks.values()]
    this.#checks.clear()
    for (const check of checks) check.callOff(new Aborted('shutdown', 'This Holdfast is closing.'))
  }
}
