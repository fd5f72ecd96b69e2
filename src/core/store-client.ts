/**
 * What Holdfast asks of the store, one method each. Each fixes how long it may take, whether it is sent again if no
 * answer comes, and what the answer to a repeat means: if the reply to the first try was lost, the repeat meets its own
 * effect, and the method answers with what is true now, not with "too late".
 *
 * Methods have the timeout of holdfast() and are repeated unless they say otherwise. What workers and upkeep ask in
 * loops of their own is in `worker-calls.ts` and `upkeep-calls.ts`.
 */
import { HoldfastError } from '../errors.ts'
import type { Ids, JobId } from '../job/ids.ts'
import type { JobRecord, NewJob } from '../job/record.ts'
import type { Deadline } from '../std/deadline.ts'
import {
  MAX_BATCH,
  SLOW_WORKER,
  type ChangeAnswer,
  type ChangeOutcome,
  type JobChange,
  type CommitRequest,
  type CompletedSettlement,
  type DeadGroupPage,
  type EnqueueAnswer,
  type JobEdit,
  type JobFilter,
  type JobPage,
  type ListQuery,
  type Note,
  type QueueStatus,
  type ScheduleList,
  type ScheduleSpec,
  type Store,
  type Transactions,
  type WakeUp,
} from '../stores/store.ts'
import { changeOne, totalsOf } from '../stores/changes.ts'
import { noTransactions } from '../stores/no-transactions.ts'
import type { Connection, Operation } from './connection.ts'
import { DEAD_LETTER_HANDLER, SUBSCRIBER, WORKER } from './notes.ts'
import { countDone, isEdited, neverSent } from './lost-replies.ts'
import { UpkeepCalls } from './upkeep-calls.ts'
import { WorkerCalls } from './worker-calls.ts'

/** What one step of a replay or a discard did. */
export interface Changed extends Pick<ChangeAnswer, 'next'> {
  readonly changed: number
  /** Jobs that matched and were left as they are. */
  readonly skipped: number
}

/** What became of the one job that a change named. */
export type ChangedOne = ChangeOutcome | 'missing'

/** A call that nothing depends on must not hold up a stop for long. */
const GOODBYE_MS = 2_000

/** What to do about each kind of wake-up; a kind without a listener is passed over. */
export type WakeUpListeners = {
  readonly [Type in WakeUp['type']]?: (hint: Extract<WakeUp, { readonly type: Type }>) => void
}

export class StoreClient {
  readonly worker: WorkerCalls
  readonly upkeep: UpkeepCalls
  readonly #connection: Connection
  readonly #ids: Ids
  /** Whether a job that completes is deleted at once. */
  readonly #forgets: boolean

  constructor(connection: Connection, ids: Ids, forgets: boolean) {
    this.worker = new WorkerCalls(connection)
    this.upkeep = new UpkeepCalls(connection)
    this.#connection = connection
    this.#ids = ids
    this.#forgets = forgets
  }

  /** The deadline of an operation that begins now, for all its calls. */
  deadline(): Deadline {
    return this.#connection.deadline()
  }

  /** The error of a caller whose time is over. `doing` completes "could not …". */
  late(doing: string, timeoutMs: number, lastError?: Error): HoldfastError {
    return this.#connection.late(doing, timeoutMs, lastError)
  }

  // ── enqueues ───────────────────────────────────────────────────────────────

  /** Writes all jobs or none. A repeat carries the same flush id, so the store writes them once. */
  async enqueue(
    jobs: readonly NewJob[],
    deadline: Deadline = this.#connection.deadline(),
  ): Promise<readonly EnqueueAnswer[]> {
    const flush = { id: this.#ids.flush(), jobs }
    const doing = `enqueue ${describe(jobs)}`
    const send: Operation<readonly EnqueueAnswer[]>['send'] = (store, withinMs) =>
      store.enqueue(flush, withinMs)
    const answers = await this.#connection.repeat({ doing, deadline, send })
    checkCount(answers.length, jobs.length)
    return answers
  }

  /** Refuses `{ tx }` if the store has no transactions. */
  transactions(): Transactions {
    const { kind, transactions } = this.#connection.store
    if (transactions !== undefined) return transactions
    throw noTransactions(kind)
  }

  /** The same in a transaction of the caller's: once and without a deadline. */
  async enqueueIn(tx: unknown, jobs: readonly NewJob[]): Promise<readonly EnqueueAnswer[]> {
    this.transactions()
    const flush = { id: this.#ids.flush(), jobs, tx }
    const answers = await this.#connection.inTransaction(`enqueue ${describe(jobs)}`, (store) =>
      store.enqueue(flush),
    )
    checkCount(answers.length, jobs.length)
    return answers
  }

  /** How to enqueue one job in a transaction without a promise; refused if the store cannot do that. */
  enqueueSync(): (tx: unknown, job: NewJob) => EnqueueAnswer {
    const transactions = this.transactions()
    const enqueue = transactions.enqueueSync?.bind(transactions)
    if (enqueue === undefined) throw notSynchronous(this.#connection.store.kind)
    return (tx, job) => {
      const flush = { id: this.#ids.flush(), jobs: [job], tx }
      const answers = this.#connection.inTransactionSync(`enqueue job "${job.name}"`, () => enqueue(flush))
      checkCount(answers.length, 1)
      return answers[0] as EnqueueAnswer
    }
  }

  /** A handler's writes and the completion of its job in one transaction: once and without a deadline. */
  commit(request: CommitRequest, write: (tx: unknown) => Promise<CompletedSettlement>): Promise<void> {
    return this.#connection.inTransaction('commit', async ({ kind, transactions }) => {
      if (transactions !== undefined) return transactions.commit(request, write)
      throw new HoldfastError('HF_NO_TRANSACTIONS', `The ${kind} store has no transactions to commit in.`)
    })
  }

  // ── jobs ───────────────────────────────────────────────────────────────────

  job(id: JobId, deadline?: Deadline): Promise<JobRecord | null> {
    return this.#repeat(`read job ${id}`, (store) => store.admin.get(id), deadline)
  }

  /** If a try before cancelled the job, the answer is `cancelled`, not `final`, or `missing` because it was not kept. */
  async cancel(id: JobId, reason: string | null, deadline: Deadline): Promise<ChangedOne> {
    const tries = this.#tries(deadline)
    const answer = await tries.repeat(`cancel job ${id}`, (store) =>
      changeOne(store, id, { type: 'cancel', reason }),
    )
    if (answer === 'missing' && tries.mayHaveTakenEffect) return 'cancelled'
    if (answer !== 'final' || tries.count === 1) return answer
    const record = await this.job(id, deadline)
    return record?.state === 'cancelled' ? 'cancelled' : 'final'
  }

  /** Asks once how a cancel stands that was answered `requested`. */
  askCancel(id: JobId, reason: string | null, withinMs: number): Promise<ChangedOne> {
    const change: JobChange = { type: 'cancel', reason }
    return this.#once(`cancel job ${id}`, (store) => changeOne(store, id, change), withinMs)
  }

  /** Once: the notes of workers that take longer than `START_WITHIN_MS` to start a job. */
  slowWorkers(withinMs: number): Promise<readonly Note[]> {
    return this.#once('find slow workers', (store) => store.notes.list(SLOW_WORKER), withinMs)
  }

  /** `before`: the job as it was read. If a try before changed it, the answer is `edited`, even if it runs by now. */
  async edit(before: JobRecord, edit: JobEdit): Promise<ChangedOne> {
    const { id } = before
    const tries = this.#tries()
    const answer = await tries.repeat(`edit job ${id}`, (store) =>
      changeOne(store, id, { type: 'edit', ...edit }),
    )
    if (answer === 'edited' || tries.count === 1) return answer
    const now = await this.job(id, tries.deadline)
    return now !== null && isEdited(now, before, edit) ? 'edited' : answer
  }

  jobs(query: ListQuery): Promise<JobPage> {
    return this.#repeat('list dead letters', (store) => store.admin.list(query))
  }

  deadGroups(filter: JobFilter, after: JobId | null): Promise<DeadGroupPage> {
    return this.#repeat('group dead letters', (store) => store.admin.deadGroups(filter, MAX_BATCH, after))
  }

  /** One step; repeat from `next` until it is null. See `#change` about a lost reply. */
  replay(filter: JobFilter, after: JobId | null): Promise<Changed> {
    return this.#change(filter, 'replay', after)
  }

  /** One step; repeat from `next` until it is null. See `#change` about a lost reply. */
  discard(filter: JobFilter, after: JobId | null): Promise<Changed> {
    return this.#change(filter, 'discard', after)
  }

  /**
   * If a try before changed jobs, the repeat does not find them any more. Jobs that are named by their ids are counted
   * as changed if they are no dead letters now. Of others, only what the repeat changed is known.
   */
  async #change(filter: JobFilter, type: 'replay' | 'discard', after: JobId | null): Promise<Changed> {
    const tries = this.#tries()
    const { outcomes, next } = await tries.repeat(`${type} dead letters`, (store) =>
      store.admin.change(filter, { type }, MAX_BATCH, after),
    )
    const answer = { ...totalsOf(outcomes), next }
    const { ids } = filter
    if (tries.count === 1 || ids === undefined || after !== null || next !== null) return answer
    const read = (query: ListQuery): Promise<JobPage> =>
      this.#repeat('list dead letters', (store) => store.admin.list(query), tries.deadline)
    return { ...answer, changed: await countDone(ids, { type, forgets: this.#forgets, read }) }
  }

  /** Replays a job that was just read as dead, with another payload; false if its unique key is held by another. */
  async replayWith(id: JobId, payload: string): Promise<boolean> {
    const tries = this.#tries()
    const filter = { ids: [id], states: ['dead'] } as const
    const { outcomes } = await tries.repeat(`replay job ${id}`, (store) =>
      store.admin.change(filter, { type: 'replay', payload }, 1, null),
    )
    const { changed, skipped } = totalsOf(outcomes)
    return changed > 0 || (tries.count > 1 && skipped === 0)
  }

  // ── queues ─────────────────────────────────────────────────────────────────

  /** Once: a count that takes long is not asked for again. */
  queues(withinMs?: number): Promise<readonly QueueStatus[]> {
    return this.#once('count jobs', (store) => store.admin.queues(), withinMs)
  }

  setPaused(queue: string, paused: boolean): Promise<void> {
    const doing = `${paused ? 'pause' : 'resume'} queue "${queue}"`
    return this.#repeat(doing, (store) => store.admin.setPaused(queue, paused))
  }

  // ── schedules ──────────────────────────────────────────────────────────────

  schedules(): Promise<ScheduleList> {
    return this.#repeat('read the schedules', (store) => store.schedules.list())
  }

  async putSchedule(id: string, schedule: ScheduleSpec): Promise<void> {
    await this.#repeat(`store schedule "${id}"`, (store) => store.schedules.put(id, schedule))
  }

  /** True also if a try without an answer may have removed it. */
  removeSchedule(id: string): Promise<boolean> {
    return this.#remove(`remove schedule "${id}"`, (store) => store.schedules.put(id, null))
  }

  // ── notes ──────────────────────────────────────────────────────────────────

  subscriptions(deadline?: Deadline): Promise<readonly Note[]> {
    return this.#repeat('read the subscriptions', (store) => store.notes.list(SUBSCRIBER), deadline)
  }

  /** As the transaction sees them. */
  subscriptionsIn(tx: unknown): Promise<readonly Note[]> {
    this.transactions()
    return this.#connection.inTransaction('publish', (store) => store.notes.list(SUBSCRIBER, tx))
  }

  async putSubscription(name: string, text: string): Promise<void> {
    await this.#repeat(`subscribe "${name}"`, (store) => store.notes.put(SUBSCRIBER, name, text, null))
  }

  /** True also if a try without an answer may have removed it. */
  removeSubscription(name: string): Promise<boolean> {
    return this.#remove(`unsubscribe "${name}"`, (store) => store.notes.put(SUBSCRIBER, name, null, null))
  }

  /** The notes in which the workers of the fleet tell about themselves. */
  workers(): Promise<readonly Note[]> {
    return this.#repeat('list the workers', (store) => store.notes.list(WORKER))
  }

  /** Tells the leader that new dead letters have a handler, for a time. */
  async declareDeadLetterHandler(text: string, ttlMs: number): Promise<void> {
    const { kind, id } = DEAD_LETTER_HANDLER
    await this.#repeat('declare the handler of dead letters', (store) =>
      store.notes.put(kind, id, text, ttlMs),
    )
  }

  // ── wake-ups ───────────────────────────────────────────────────────────────

  /** Resolves to how to stop, which never fails: hints are best effort, and so is ending them. */
  async subscribe(listeners: WakeUpListeners): Promise<() => Promise<void>> {
    let newest: object | undefined
    const stop = await this.#repeat('subscribe to wake-ups', async (store) => {
      const mine = {}
      newest = mine
      const stopThis = await store.subscribe((hint) => tell(listeners, hint))
      // A try that was given up and is answered after all would tell everything twice.
      if (newest !== mine) await stopThis()
      return stopThis
    }).catch((error: unknown) => {
      newest = undefined
      throw error
    })
    return () =>
      this.#once('end a subscription', stop, GOODBYE_MS).catch((error: unknown) =>
        this.#connection.report('end a subscription', error),
      )
  }

  // ── tries ──────────────────────────────────────────────────────────────────

  #once<T>(doing: string, send: (store: Store) => Promise<T>, withinMs?: number): Promise<T> {
    return this.#connection.once({ doing, deadline: this.#connection.deadline(withinMs), send })
  }

  #repeat<T>(doing: string, send: (store: Store) => Promise<T>, deadline?: Deadline): Promise<T> {
    return this.#connection.repeat({ doing, deadline: deadline ?? this.#connection.deadline(), send })
  }

  async #remove(doing: string, send: (store: Store) => Promise<boolean>): Promise<boolean> {
    const tries = this.#tries()
    const isRemoved = await tries.repeat(doing, send)
    return isRemoved || tries.mayHaveTakenEffect
  }

  #tries(deadline?: Deadline): Tries {
    return new Tries(this.#connection, deadline)
  }
}

/** An operation that has to know whether it was repeated. Its further steps share its deadline. */
class Tries {
  readonly deadline: Deadline
  count = 0
  /** Tries that failed before they reached the store. */
  #neverSent = 0
  readonly #connection: Connection

  constructor(connection: Connection, deadline = connection.deadline()) {
    this.#connection = connection
    this.deadline = deadline
  }

  /** Whether a try before the answered one may have taken the step. Only of a single step: see `neverSent`. */
  get mayHaveTakenEffect(): boolean {
    return this.count - this.#neverSent > 1
  }

  repeat<T>(doing: string, send: (store: Store) => Promise<T>): Promise<T> {
    return this.#connection.repeat({
      doing,
      deadline: this.deadline,
      send: (store) => {
        this.count++
        return send(store).catch((error: unknown) => {
          if (neverSent(error)) this.#neverSent++
          throw error
        })
      },
    })
  }
}

function tell(listeners: WakeUpListeners, hint: WakeUp): void {
  switch (hint.type) {
    case 'ready':
      return listeners.ready?.(hint)
    case 'due':
      return listeners.due?.(hint)
    case 'cancel':
      return listeners.cancel?.(hint)
    case 'paused':
      return listeners.paused?.(hint)
    case 'leased':
      return listeners.leased?.(hint)
    default:
      // A kind that a store invents is not for us.
      hint satisfies never
  }
}

function notSynchronous(kind: string): HoldfastError {
  return new HoldfastError('HF_NO_TRANSACTIONS', `The ${kind} store cannot enqueue without a promise.`, {
    hint: 'Use await job.enqueue(input, { tx }), or sqliteStore({ database }), which can.',
  })
}

function checkCount(answered: number, asked: number): void {
  if (answered === asked) return
  throw new HoldfastError('HF_STORE_CONTRACT', `The store answered ${answered} of ${asked} enqueues.`)
}

function describe(jobs: readonly NewJob[]): string {
  return jobs.length === 1 ? `job "${jobs[0]?.name}"` : `${jobs.length} jobs`
}
