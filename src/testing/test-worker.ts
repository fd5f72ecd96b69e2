/**
 * The worker of the test kit: the real claim, execution, rules and settlement, one job at a time and only when the test
 * says so. Its clock stands still while a handler runs, unless the test moves it.
 */
import type { Client } from '../client/client.ts'
import type { Core } from '../core/core.ts'
import type { LocalCancel, LocalWorker } from '../core/local-workers.ts'
import { DEAD_LETTER_JOB } from '../job/dead-letter.ts'
import { HoldfastError } from '../errors.ts'
import type { JobId, WorkerId } from '../job/ids.ts'
import { jobNotFound } from '../job/not-found.ts'
import type { Outcome } from '../job/settlement.ts'
import { declareHandler, HandingOver } from '../maintenance/dead-letters.ts'
import { fireSchedules } from '../maintenance/scheduler.ts'
import { toError } from '../std/text.ts'
import { letPromisesRun, type VirtualClock } from '../std/virtual-clock.ts'
import { MAX_BATCH, type CycleAnswer, type CycleRequest, type Lease } from '../stores/store.ts'
import { Attempt } from '../worker/attempt.ts'
import { Attempts } from '../worker/attempts.ts'
import { BatchGroup } from '../worker/batch-group.ts'
import { batchFunction, lateOutcome } from '../worker/execute.ts'
import { retryOfUnknownJobs, type PendingSettle } from '../worker/settling.ts'

export type RunResult<Out> =
  | { readonly state: 'completed'; readonly result: Out }
  /** A dead letter: no attempts are left, or none would help. */
  | { readonly state: 'dead'; readonly error: Error }
  | { readonly state: 'retrying'; readonly error: Error; readonly retryInMs: number }
  | { readonly state: 'snoozed'; readonly delayMs: number; readonly error: Error | null }
  | { readonly state: 'cancelled'; readonly reason: string | null }

const YEAR_MS = 365 * 86_400_000

export class TestWorker implements LocalWorker {
  readonly #client: Client
  readonly #core: Core
  readonly #clock: VirtualClock
  readonly #deliver: 'once' | 'twice'
  readonly #attempts: Attempts
  /** For each running attempt, the function to call with its outcome. */
  readonly #waiting = new Map<Attempt, (outcome: Outcome) => void>()
  readonly #deliveredOnce = new Set<JobId>()
  readonly #handing: HandingOver
  #worker: WorkerId
  #preparing = 0
  /** Jobs whose cancel was requested while they were claimed. */
  readonly #cancels = new Map<string, string | null>()
  #leave: (() => void) | undefined

  constructor(client: Client, clock: VirtualClock, deliver: 'once' | 'twice') {
    const { core } = client
    this.#client = client
    this.#core = core
    this.#clock = clock
    this.#deliver = deliver
    this.#worker = core.ids.worker()
    this.#handing = new HandingOver(core, (items) => client.enqueuer.together(items))
    this.#attempts = new Attempts({
      core,
      definitionOf: (name) => core.definition(name),
      retryOfUnknown: retryOfUnknownJobs(core),
      // A test waits for its handler: time stands still meanwhile.
      graceMs: Infinity,
      onReturned: (attempt, outcome) => this.#waiting.get(attempt)?.(outcome ?? { type: 'interrupted' }),
      onGivenUp: () => undefined,
    })
  }

  async start(): Promise<void> {
    await this.#register()
    this.#leave = this.#core.localWorkers.join(this)
    const names = this.#core.registry.all().map(({ name }) => name)
    await this.#client.schedules.putDeclared(names)
    await this.#client.subscriptions.putDeclared(names)
    await declareHandler(this.#core, this.#core.definition(DEAD_LETTER_JOB))
  }

  async #register(): Promise<void> {
    // Tests advance by years, and no other process is there to rescue it.
    const registration = { worker: this.#worker, leaseMs: 100 * YEAR_MS, atOnce: undefined }
    await this.#core.store.worker.register(registration)
  }

  stop(): void {
    this.#attempts.clear()
    this.#leave?.()
  }

  /** This worker holds every claimed job of the test: it is running or about to. */
  cancelled(id: string, reason: string | null): LocalCancel {
    this.#cancels.set(id, reason)
    for (const attempt of this.#attempts.running)
      if (attempt.job.id === id) this.#attempts.cancel(attempt, reason)
    return 'running'
  }

  /** There is no backlog: each claim is for one run. */
  paused(): void {}

  /** One attempt at one job, or a batch of jobs, of the first queue with due jobs. Empty if there are none. */
  async runNext(): Promise<readonly RunResult<unknown>[]> {
    await this.#promote()
    for (const queue of this.#core.queues.names) {
      const [lease] = await this.#claim(queue, 1)
      if (lease !== undefined) return this.#runWithCompany(lease)
    }
    return []
  }

  /** A batch handler gets the jobs that its worker would gather, unless the first run of each job is to be lost. */
  async #runWithCompany(lease: Lease): Promise<readonly RunResult<unknown>[]> {
    const name = lease.jobs[0]?.name
    const definition = this.#core.definition(name ?? '')
    if (definition?.batch === undefined || this.#deliver === 'twice') return [await this.#run(lease, 0)]
    const { batch } = definition
    const places = [{ lease, position: 0 }]
    const more = batch.size.start > 1 ? await this.#claim(lease.queue, batch.size.start - 1) : []
    for (const other of more) {
      const isMeant = other.jobs.map((job) => job.name === name && job.crashes === 0)
      await this.#release(other, (position) => isMeant[position] === true)
      isMeant.forEach((meant, position) => meant && places.push({ lease: other, position }))
    }
    const shared = new BatchGroup({ run: batchFunction(definition), core: this.#core, size: places.length })
    return Promise.all(places.map((place) => this.#run(place.lease, place.position, { shared })))
  }

  /** Enqueues a job and makes one attempt at it. */
  async runNew(enqueue: () => Promise<{ readonly id: string }>): Promise<RunResult<unknown>> {
    this.#preparing++
    let prepared = false
    const onStart = (): void => {
      if (!prepared) this.#preparing--
      prepared = true
    }
    try {
      const { id } = await enqueue()
      return await this.runById(id as JobId, onStart)
    } finally {
      onStart()
    }
  }

  /** Waits until every requested run has reached its handler. The clock must not move before. */
  async allStarted(): Promise<void> {
    while (this.#preparing > 0) await letPromisesRun()
  }

  /** One attempt at this job. Jobs before it in its queue are put back unchanged. */
  async runById(id: JobId, onStart?: () => void): Promise<RunResult<unknown>> {
    const record = await this.#core.store.job(id)
    if (record === null) throw jobNotFound(id)
    await this.#clock.advance(Math.max(0, record.dueAt - this.#clock.now()))
    await this.#promote()
    const others: Lease[] = []
    try {
      for (;;) {
        const leases = await this.#claim(record.queue, MAX_BATCH)
        if (leases.length === 0) {
          throw new HoldfastError(
            'HF_TEST_KIT',
            `Job ${id} cannot be run now: its queue is paused, or it is running.`,
          )
        }
        for (const lease of leases) {
          const position = lease.jobs.findIndex((job) => job.id === id)
          await this.#release(lease, (other) => other === position)
          if (position !== -1) return await this.#run(lease, position, { onStart })
          others.push(lease)
        }
      }
    } finally {
      for (const lease of others) await this.#release(lease, () => false)
    }
  }

  async nextDueInMs(): Promise<number | null> {
    return (await this.#promote()).nextInMs
  }

  /** Everything that is due, including ticks of schedules and new dead letters. */
  async #promote(): Promise<{ nextInMs: number | null }> {
    await this.#handing.look()
    const tickInMs = (await fireSchedules(this.#core)) ?? Infinity
    const { upkeep } = this.#core.store
    let answer = await upkeep.promote(MAX_BATCH)
    while (answer.promoted === MAX_BATCH) answer = await upkeep.promote(MAX_BATCH)
    const nextInMs = Math.min(tickInMs, answer.nextInMs ?? Infinity)
    return { nextInMs: nextInMs === Infinity ? null : nextInMs }
  }

  async #claim(queue: string, limit: number): Promise<readonly Lease[]> {
    const claim = { queue, limit, suspects: true }
    return (await this.#cycle({ settle: [], claim })).leases
  }

  async #release({ token, jobs }: Lease, isKept: (position: number) => boolean): Promise<void> {
    const positions = jobs.map((_, position) => position).filter((position) => !isKept(position))
    const settlement = { type: 'release' } as const
    const releases = positions.map((position) => ({ token, position, settlement, runMs: 0 }))
    await this.#cycle({ settle: releases, claim: null })
  }

  #cycle(request: Omit<CycleRequest, 'worker'>): Promise<CycleAnswer> {
    const { store, settings } = this.#core
    return store.worker.cycle({ worker: this.#worker, ...request }, settings.timeoutMs)
  }

  async #run(
    lease: Lease,
    position: number,
    { onStart, shared }: { onStart?: (() => void) | undefined; shared?: BatchGroup } = {},
  ): Promise<RunResult<unknown>> {
    const job = lease.jobs[position]
    if (job === undefined) throw new Error(`lease ${lease.token} has no position ${position}`)
    const attempt = new Attempt(job, lease, position, this.#worker, this.#clock.monotonicMs())
    attempt.batch = shared
    const late = this.#cancelOf(job.id) ?? lateOutcome(attempt, this.#clock.monotonicMs())
    if (late !== null) shared?.ended(attempt)
    const executing = late === null ? this.#execute(attempt) : Promise.resolve(late)
    onStart?.()
    const pending = this.#attempts.conclude(attempt, await executing)
    if (pending === null) throw new Error(`attempt ${attempt.job.id} has ended twice`)
    if (this.#deliver === 'twice' && !this.#deliveredOnce.has(job.id)) {
      this.#deliveredOnce.add(job.id)
      await this.#dieBeforeSettling()
      return this.runById(job.id)
    }
    return this.#settle(pending)
  }

  #cancelOf(id: string): Outcome | null {
    return this.#cancels.has(id) ? { type: 'cancelled', reason: this.#cancels.get(id) ?? null } : null
  }

  async #execute(attempt: Attempt): Promise<Outcome> {
    try {
      return await new Promise((resolve) => {
        this.#waiting.set(attempt, resolve)
        this.#attempts.run(attempt, this.#clock.monotonicMs())
      })
    } finally {
      this.#waiting.delete(attempt)
    }
  }

  /** Acts like a process that is killed after its work is done and before its settle is sent. */
  async #dieBeforeSettling(): Promise<void> {
    const { store, settings } = this.#core
    await this.#cycle({ settle: [], claim: null, reports: this.#attempts.takeReports() })
    await store.worker.retire(this.#worker, settings.timeoutMs)
    this.#worker = this.#core.ids.worker()
    await this.#register()
    await store.upkeep.rescue(MAX_BATCH)
  }

  async #settle(pending: PendingSettle): Promise<RunResult<unknown>> {
    const reports = this.#attempts.takeReports()
    const { settled } = await this.#cycle({ settle: [pending.request], claim: null, reports })
    this.#core.instrumentation.attemptEnded(pending, settled[0] ?? 'lost')
    return resultOf(pending)
  }
}

function resultOf({ outcome, request: { settlement } }: PendingSettle): RunResult<unknown> {
  const error = outcome.type === 'failed' ? toError(outcome.thrown) : null
  switch (settlement.type) {
    case 'completed':
      return completedWith(settlement.result)
    case 'confirm':
      return completedWith(outcome.type === 'committed' ? outcome.result : null)
    case 'dead':
      return { state: 'dead', error: error ?? new Error(settlement.error.message) }
    case 'retry':
      return {
        state: 'retrying',
        error: error ?? new Error(settlement.error.message),
        retryInMs: settlement.delayMs,
      }
    case 'snooze':
      return { state: 'snoozed', delayMs: settlement.delayMs, error }
    case 'release':
      return { state: 'snoozed', delayMs: 0, error }
    case 'cancelled':
      return { state: 'cancelled', reason: settlement.reason }
  }
}

function completedWith(result: string | null): RunResult<unknown> {
  return { state: 'completed', result: result === null ? undefined : (JSON.parse(result) as unknown) }
}
