/**
 * The small builders that the tests speak in. Times are compared with some slack, because a real store's clock keeps
 * running during a test; windows in the tests are minutes wide for the same reason.
 */
import assert from 'node:assert/strict'
import type { AttemptError, FailureKind } from '../../job/failure.ts'
import { makeIds, type FlushId, type Ids, type JobId, type Token, type WorkerId } from '../../job/ids.ts'
import { DEFAULT_AGING_MS } from '../../job/rank.ts'
import type { AttemptRecord, ClaimedJob, Due, JobRecord, NewJob } from '../../job/record.ts'
import type { Settlement } from '../../job/settlement.ts'
import type { JobState } from '../../job/states.ts'
import type { UniqueClaim } from '../../job/unique.ts'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import type {
  ClaimRequest,
  CycleAnswer,
  EnqueueAnswer,
  JobEdit,
  Lease,
  Page,
  Report,
  RescueAnswer,
  Retention,
  SettleAnswer,
  SettleRequest,
  Store,
} from '../store.ts'
import { changeOne, totalsOf } from '../changes.ts'
import type { StoreUnderTest } from './subject.ts'

export const SECOND_MS = 1_000
export const MINUTE_MS = 60_000
export const LEASE_MS = 30_000
export const DAY_MS = 86_400_000
export const QUEUE = 'default'
const SLACK_MS = 5_000
/** Round trips that `waitFor` makes before it gives up: hints of a real server arrive within a few. */
const MAX_TURNS = 1_000
const RUN_MS = 12

export const NOW: Due = { inMs: 0 }

/** Ids must differ also between runs against one server, so they are made of the real time and real chance. */
const ids: Ids = makeIds(systemClock, systemRandom)
export const newJobId = (): JobId => ids.job()
export const newWorkerId = (): WorkerId => ids.worker()
export const newFlushId = (): FlushId => ids.flush()

/** A token that no store of this suite has handed out. */
export const UNKNOWN_TOKEN = (2 ** 45) as Token

export type JobParts = Partial<Omit<NewJob, 'headStartMs'>> & { readonly agingMs?: number }

/** A job of priority 0 without a head start unless told, so that order is by due time alone. */
export function newJob(parts: JobParts = {}): NewJob {
  const { agingMs = DEFAULT_AGING_MS, ...facts } = parts
  return {
    id: newJobId(),
    name: 'mail.send',
    queue: QUEUE,
    payload: '{"to":"ada"}',
    priority: 0,
    headStartMs: (facts.priority ?? 0) * agingMs,
    maxAttempts: 4,
    maxCrashes: 3,
    group: null,
    limits: [],
    envelope: { correlationId: null, tags: [], metadata: {}, retry: null, timeoutMs: null },
    due: NOW,
    unique: null,
    ...facts,
  }
}

export function newJobs(count: number, parts: JobParts = {}): NewJob[] {
  return Array.from({ length: count }, () => newJob(parts))
}

export function uniqueWhile(
  rule: 'ready' | 'unfinished',
  key = 'mail.send k1',
  onConflict: UniqueClaim['onConflict'] = 'ignore',
): UniqueClaim {
  return { key, hold: { while: rule }, onConflict }
}

export function failure(
  message = 'smtp is away',
  kind: FailureKind = 'transient',
  attempt = 1,
): AttemptError {
  return {
    kind,
    name: 'Error',
    message,
    code: 'ESMTP',
    stack: 'Error: at line 1',
    fingerprint: 'f1',
    attempt,
  }
}

type Kind<Type extends Settlement['type']> = Extract<Settlement, { readonly type: Type }>

export const COMPLETED: Kind<'completed'> = { type: 'completed', result: '{"ok":true}', resultDropped: false }
export const RELEASE: Kind<'release'> = { type: 'release' }
export const CONFIRM: Kind<'confirm'> = { type: 'confirm' }
export const DEAD: Kind<'dead'> = { type: 'dead', error: failure('broken for good', 'permanent') }
export const CANCELLED: Kind<'cancelled'> = { type: 'cancelled', reason: 'not needed' }

export function retry(delayMs = MINUTE_MS, error: AttemptError = failure()): Kind<'retry'> {
  return { type: 'retry', delayMs, error }
}

export function snooze(delayMs = MINUTE_MS, error: AttemptError | null = null): Kind<'snooze'> {
  return { type: 'snooze', delayMs, error }
}

/** A kind without an example does not compile. */
const ONE_OF_EACH: { readonly [Type in Settlement['type']]: Kind<Type> } = {
  completed: COMPLETED,
  retry: retry(),
  dead: DEAD,
  snooze: snooze(),
  release: RELEASE,
  confirm: CONFIRM,
  cancelled: CANCELLED,
}

export const EVERY_SETTLEMENT: readonly Settlement[] = Object.values(ONE_OF_EACH)

/** Keeps everything; a test names what it wants gone. */
export function retention(parts: Partial<Retention> = {}): Retention {
  const forever = 36_500 * DAY_MS
  return {
    completedMs: forever,
    deadMs: forever,
    cancelledMs: forever,
    maxCompleted: null,
    maxDead: null,
    maxCancelled: null,
    ...parts,
  }
}

/** A claimed job and its position in its lease. */
export interface Held {
  readonly worker: WorkerId
  readonly lease: Lease
  readonly token: Token
  readonly position: number
  readonly job: ClaimedJob
}

export function settleRequest(held: Pick<Held, 'token' | 'position'>, settlement: Settlement): SettleRequest {
  return { token: held.token, position: held.position, settlement, runMs: RUN_MS }
}

/** A record as a worker makes it. */
export function attemptRecord(held: Held, parts: Partial<AttemptRecord> = {}): AttemptRecord {
  const { kind, name, message, code, fingerprint } = failure()
  return {
    attempt: held.job.attempt,
    worker: held.worker,
    startedAt: held.lease.claimedAt,
    durationMs: RUN_MS,
    outcome: 'failed',
    error: { kind, name, message, code, fingerprint },
    ...parts,
  }
}

export class Harness {
  readonly store: Store
  readonly #under: StoreUnderTest

  constructor(under: StoreUnderTest) {
    this.store = under.store
    this.#under = under
  }

  advance(ms: number): Promise<void> {
    return this.#under.advance(ms)
  }

  /** The store's time, read off a job that is written now. */
  async now(): Promise<number> {
    const probe = await this.put({ queue: 'clock-probe' })
    return (await this.record(probe.id)).createdAt
  }

  /** Moves beyond a due time and promotes what is due by then. */
  async passAndPromote(ms: number): Promise<void> {
    await this.advance(ms)
    await this.store.upkeep.promote(1_000)
  }

  enqueue(jobs: readonly NewJob[], id: FlushId = newFlushId()): Promise<readonly EnqueueAnswer[]> {
    return this.store.enqueue({ id, jobs })
  }

  /** Enqueues one job that must be new. */
  async put(parts: JobParts = {}): Promise<NewJob> {
    const job = newJob(parts)
    const answers = await this.enqueue([job])
    assert.deepEqual(answers, [{ id: job.id, outcome: 'inserted' }], 'a new job is inserted')
    return job
  }

  async worker(leaseMs = LEASE_MS, atOnce?: number): Promise<WorkerId> {
    const worker = newWorkerId()
    await this.store.register(worker, leaseMs, atOnce)
    return worker
  }

  cycle(
    worker: WorkerId,
    settle: readonly SettleRequest[],
    claim: Partial<ClaimRequest> | null,
  ): Promise<CycleAnswer> {
    const request = claim === null ? null : { queue: QUEUE, limit: 10, suspects: false, ...claim }
    return this.store.cycle({ worker, settle, claim: request })
  }

  /** Reports without a settle or a claim. */
  async report(worker: WorkerId, reports: readonly Report[]): Promise<void> {
    await this.store.cycle({ worker, settle: [], claim: null, reports })
  }

  async claim(worker: WorkerId, parts: Partial<ClaimRequest> = {}): Promise<readonly Lease[]> {
    return (await this.cycle(worker, [], parts)).leases
  }

  /** Claims and flattens: every job with its place. */
  async claimAll(worker: WorkerId, parts: Partial<ClaimRequest> = {}): Promise<Held[]> {
    return heldIn(worker, await this.claim(worker, parts))
  }

  /** Ids in the order they were handed out. */
  async claimIds(worker: WorkerId, parts: Partial<ClaimRequest> = {}): Promise<JobId[]> {
    return (await this.claimAll(worker, parts)).map((held) => held.job.id)
  }

  async claimOne(worker: WorkerId, parts: Partial<ClaimRequest> = {}): Promise<Held> {
    const [held] = await this.claimAll(worker, { limit: 1, ...parts })
    assert.ok(held !== undefined, 'a claimable job is handed out')
    return held
  }

  /** Enqueues a job and has a worker of its own claim it; its queue must be empty before. */
  async running(parts: JobParts = {}): Promise<Held> {
    const job = await this.put(parts)
    const held = await this.claimOne(await this.worker(), { queue: job.queue })
    assert.equal(held.job.id, job.id, 'the only job of the queue is the one that is claimed')
    return held
  }

  async settle(held: Held, settlement: Settlement): Promise<SettleAnswer> {
    const { settled } = await this.cycle(held.worker, [settleRequest(held, settlement)], null)
    const [answer] = settled
    assert.ok(answer !== undefined && settled.length === 1, 'one settle has one answer')
    return answer
  }

  async settled(held: Held, settlement: Settlement): Promise<JobRecord> {
    assert.equal(
      await this.settle(held, settlement),
      'written',
      `a held job is settled as ${settlement.type}`,
    )
    return this.record(held.job.id)
  }

  /** Enqueues, claims and settles one job. */
  async finished(settlement: Settlement, parts: JobParts = {}): Promise<JobRecord> {
    return this.settled(await this.running(parts), settlement)
  }

  async record(id: JobId): Promise<JobRecord> {
    const record = await this.store.admin.get(id)
    assert.ok(record !== null, `job ${id} is known to the store`)
    return record
  }

  async inState<State extends JobState>(
    id: JobId,
    state: State,
  ): Promise<JobRecord & { readonly state: State }> {
    const record = await this.record(id)
    assert.equal(record.state, state, `the job is ${state}`)
    return record as JobRecord & { readonly state: State }
  }

  rescue(limit = 1_000): Promise<RescueAnswer> {
    return this.store.upkeep.rescue(limit)
  }

  /** The worker dies without a word and its lease runs out; a rescue takes what it held. */
  async lose(...workers: WorkerId[]): Promise<RescueAnswer> {
    await this.advance(LEASE_MS + SECOND_MS)
    const answer = await this.rescue()
    for (const worker of workers)
      assert.ok(answer.workers.includes(worker), 'the rescue names the lost worker')
    return answer
  }

  /** A job that has lost a worker and is ready again. */
  async suspect(parts: JobParts = {}): Promise<JobId> {
    const held = await this.running(parts)
    await this.lose(held.worker)
    await this.passAndPromote(2 * SECOND_MS)
    await this.inState(held.job.id, 'ready')
    return held.job.id
  }

  /** Awaits a fact, by round trips to the store instead of by time. */
  async waitFor(what: string, holds: () => boolean): Promise<void> {
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      if (holds()) return
      await this.advance(1)
      await this.store.admin.queues()
    }
    assert.fail(`Gave up waiting: ${what}`)
  }
}

type HasAdmin = Pick<Store, 'admin'>

export function cancelOne(store: HasAdmin, id: JobId, reason: string | null): ReturnType<typeof changeOne> {
  return changeOne(store, id, { type: 'cancel', reason })
}

export function editOne(store: HasAdmin, id: JobId, edit: JobEdit): ReturnType<typeof changeOne> {
  return changeOne(store, id, { type: 'edit', ...edit })
}

/** A page of a change, with its outcomes added up. */
export interface ChangedPage extends Page {
  readonly changed: number
  readonly skipped: number
}

export async function changeJobs(
  { admin }: HasAdmin,
  ...args: Parameters<Store['admin']['change']>
): Promise<ChangedPage> {
  const { outcomes, ...page } = await admin.change(...args)
  return { ...totalsOf(outcomes), ...page }
}

export function heldIn(worker: WorkerId, leases: readonly Lease[]): Held[] {
  return leases.flatMap((lease) =>
    lease.jobs.map((job, position) => ({ worker, lease, token: lease.token, position, job })),
  )
}

export function idsOf(jobs: readonly { readonly id: JobId }[]): JobId[] {
  return jobs.map((job) => job.id)
}

/** Both lists hold the same ids, in any order. */
export function sameIds(actual: readonly JobId[], expected: readonly JobId[], message: string): void {
  assert.deepEqual([...actual].toSorted(), [...expected].toSorted(), message)
}

export function near(actual: number, expected: number, message: string): void {
  const off = Math.abs(actual - expected)
  assert.ok(off <= SLACK_MS, `${message}: expected about ${expected}, got ${actual} (${off} ms off)`)
}

export function between(actual: number, low: number, high: number, message: string): void {
  assert.ok(actual >= low && actual <= high, `${message}: expected ${low} to ${high}, got ${actual}`)
}
