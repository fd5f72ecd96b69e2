/**
 * The moves that every step of the store is made of. A step runs inside one transaction of one connection, synchronously
 * from its first read to its last write. There is one path into `ready` and one out of a lease; both keep the counts.
 */
import { HoldfastError } from '../../../errors.ts'
import type { JobId, Token, WorkerId } from '../../../job/ids.ts'
import type { Due, NewJob } from '../../../job/record.ts'
import type { FinalState, StoredState } from '../../../job/states.ts'
import type { UniqueClaim } from '../../../job/unique.ts'
import type { Clock } from '../../../std/clock.ts'
import type { Random } from '../../../std/random.ts'
import type { RescueAnswer, WakeUp } from '../../store.ts'
import { checkJob, damaged, sumOfEnded, sumOfJob } from './damage.ts'
import type { Db } from './db.ts'
import { jobColumns, jobValues, pastValues, readPast, type JobRow, type Past, type PastRow } from './rows.ts'

/** The processes that share the database. */
export interface Processes {
  /** Names this process. */
  readonly own: string | null
  /** Whether a process is provably gone, so that its leases need not run out. */
  isGone(process: string): boolean
}

/** Both clocks, of which only the second is sure never to be set, and stands still while the machine sleeps. */
export type EngineClock = Pick<Clock, 'now' | 'monotonicMs'>

export interface EngineParts {
  readonly db: Db
  readonly clock: EngineClock
  readonly random: Random
  readonly processes: Processes
  /** Whether the file is ours, so that we make it smaller. @default false */
  readonly ownsFile?: boolean
}

/** More than a clock that is being corrected gains between two steps. */
const JUMP_MS = 1_000

type Counts = Record<StoredState, number>

const NOTHING: RescueAnswer = { workers: [], jobs: [] }

function join(first: RescueAnswer, second: RescueAnswer): RescueAnswer {
  return { workers: [...first.workers, ...second.workers], jobs: [...first.jobs, ...second.jobs] }
}

/** How a job ended, as far as that is not the same for all. */
export interface Ending {
  /** The lease it was under; null if it was waiting. */
  readonly token?: Token | null
  readonly worker?: WorkerId | null
  readonly runMs?: number | null
  readonly result?: string | null
  readonly resultDropped?: boolean
  readonly reason?: string | null
}

export class Engine {
  readonly db: Db
  readonly random: Random
  readonly processes: Processes
  readonly ownsFile: boolean
  readonly #clock: EngineClock
  /** Changes of this transaction that are not written yet. */
  readonly #counts = new Map<string, Counts>()
  #hints: WakeUp[] = []
  /** What was rescued outside of `rescue`: in this transaction, and in those before it. */
  #rescuing: RescueAnswer = NOTHING
  #rescued: RescueAnswer = NOTHING
  /** What this transaction has answered with; it is not told if that is rolled back. */
  #telling: RescueAnswer = NOTHING
  #now = 0
  #monotonicMs = 0
  /** How far the wall clock is ahead of the monotonic one; NaN before the first look. */
  #aheadMs = NaN
  #jumpedAtMs = -Infinity

  constructor({ db, clock, random, processes, ownsFile = false }: EngineParts) {
    this.db = db
    this.random = random
    this.processes = processes
    this.ownsFile = ownsFile
    this.#clock = clock
    // A machine that sleeps before the first step has slept, too.
    this.begin()
  }

  /** To be called before each step: it has one time from beginning to end. */
  begin(): this {
    const now = this.#clock.now()
    this.#now = Math.floor(now)
    this.#monotonicMs = this.#clock.monotonicMs()
    const aheadMs = now - this.#monotonicMs
    if (aheadMs - this.#aheadMs > JUMP_MS) this.#jumpedAtMs = this.#monotonicMs
    this.#aheadMs = aheadMs
    return this
  }

  /**
   * Whether the machine slept, or its clock was set forward, less than so long ago. A lease that ran out by that proves
   * nothing: its worker stood still like everybody else, and gets the time to renew it.
   */
  hasJumpedWithin(ms: number): boolean {
    return this.#monotonicMs - this.#jumpedAtMs < ms
  }

  now(): number {
    return this.#now
  }

  /** A time in the past means now: it must not buy a head start. */
  dueAt(due: Due): number {
    const now = this.now()
    const at = Math.round('inMs' in due ? now + due.inMs : Math.max(due.atMs, now))
    if (Number.isSafeInteger(at)) return at
    throw new HoldfastError('HF_STORE_REFUSED', `A job cannot be due at ${at} ms since 1970.`)
  }

  // ── counts and hints: written, or told, when the transaction ends ────────────

  count(queue: string, state: StoredState, change: number): void {
    let counts = this.#counts.get(queue)
    if (counts === undefined) {
      counts = { scheduled: 0, ready: 0, running: 0, completed: 0, dead: 0, cancelled: 0 }
      this.#counts.set(queue, counts)
    }
    counts[state] += change
  }

  /** Told to listeners after the commit. */
  hint(hint: WakeUp): void {
    this.#hints.push(hint)
  }

  /** To be called before each commit. */
  writeCounts(): void {
    for (const [queue, { scheduled, ready, running, completed, dead, cancelled }] of this.#counts) {
      this.db.run('addQueue', queue)
      this.db.runOne('count', scheduled, ready, running, completed, dead, cancelled, queue)
    }
    this.#counts.clear()
  }

  /** To be called after each commit, and after each rollback, which takes back what was to be told. */
  takeHints(): readonly WakeUp[] {
    const hints = this.#hints
    this.#hints = []
    this.#rescued = join(this.#rescued, this.#rescuing)
    this.#rescuing = NOTHING
    this.#telling = NOTHING
    return hints
  }

  rolledBack(): void {
    this.#rescued = join(this.#telling, this.#rescued)
    this.#telling = NOTHING
    this.#counts.clear()
    this.#hints = []
    this.#rescuing = NOTHING
  }

  // ── rescues: the next `rescue` answers with all of them, so that its caller can tell ──

  rescued(answer: RescueAnswer): void {
    this.#rescuing = join(this.#rescuing, answer)
  }

  /** Takes the place of an engine whose connection failed: what that one rescued is told with the next rescue. */
  succeed(before: Engine): void {
    this.#rescued = join(before.takeRescued(), this.#rescued)
  }

  get hasRescued(): boolean {
    return this.#rescued.workers.length + this.#rescued.jobs.length > 0
  }

  takeRescued(): RescueAnswer {
    const rescued = this.#rescued
    this.#rescued = NOTHING
    this.#telling = join(this.#telling, rescued)
    return rescued
  }

  // ── where jobs are ───────────────────────────────────────────────────────────

  /** An id that exists already violates a constraint, and the whole transaction is taken back. */
  insert(job: NewJob): void {
    const created = this.now()
    const due = this.dueAt(job.due)
    const columns = jobColumns(job, due)
    const values = jobValues({ ...columns, id: job.id, created })
    const seq = this.db.insert('insertJob', job.id, created, ...values)
    this.putWaiting({ ...columns, id: job.id, seq, created }, due > created ? 'scheduled' : 'ready')
  }

  /** Writes everything but the id and the time of creation of a job that is off its place. */
  rewrite(row: Omit<JobRow, 'sum'>): void {
    this.db.runOne('rewriteJob', ...jobValues(row), row.seq)
  }

  /** Writes what changes of a job when it is to wait again. */
  comeBack(row: JobRow, change: Partial<Pick<JobRow, 'due' | 'attempt' | 'crashes'>>): JobRow {
    const next = { ...row, ...change }
    const sum = sumOfJob(next)
    this.db.runOne('comeBack', next.due, next.attempt, next.crashes, sum, row.seq)
    return { ...next, sum }
  }

  job(id: JobId): JobRow | undefined {
    const row = this.db.get<JobRow>('jobById', id)
    return row === undefined ? undefined : checkJob(row)
  }

  jobAt(seq: number): JobRow {
    const row = this.db.get<JobRow>('jobBySeq', seq)
    if (row === undefined) throw damaged(`job ${seq} is listed, and there is no such job`)
    return checkJob(row)
  }

  /** The one way into `ready` and `scheduled`. */
  putWaiting(row: Omit<JobRow, 'sum'>, state: 'ready' | 'scheduled'): void {
    const { queue, head, due, id, seq } = row
    if (state === 'ready') {
      this.db.run('intoReady', queue, suspect(row), head, due, id, seq)
      this.hint({ type: 'ready', queue })
    } else {
      this.db.run('intoScheduled', due, seq)
      this.hint({ type: 'due', inMs: Math.max(0, due - this.now()) })
    }
    this.count(queue, state, 1)
  }

  takeWaiting(row: JobRow, state: 'ready' | 'scheduled'): void {
    const { queue, head, due, id, seq } = row
    if (state === 'ready') this.db.runOne('outOfReady', queue, suspect(row), head, due, id)
    else this.db.runOne('outOfScheduled', due, seq)
    this.count(queue, state, -1)
  }

  waitingState(row: JobRow): 'ready' | 'scheduled' | null {
    const { queue, head, due, id, seq } = row
    if (this.db.get('isReady', queue, suspect(row), head, due, id) !== undefined) return 'ready'
    return this.db.get('isScheduled', due, seq) === undefined ? null : 'scheduled'
  }

  /** Final, for a job that is neither waiting nor under a lease any more. */
  finish(row: Pick<JobRow, 'seq' | 'queue'>, state: FinalState, end: Ending): void {
    const {
      token = null,
      worker = null,
      runMs = null,
      result = null,
      resultDropped = false,
      reason = null,
    } = end
    const dropped = resultDropped ? 1 : 0
    const ended = { state, finished: this.now(), token, worker, run_ms: runMs, result, dropped, reason }
    const sum = sumOfEnded(row.seq, ended)
    this.db.run(
      'intoEnded',
      row.seq,
      state,
      ended.finished,
      token,
      worker,
      runMs,
      result,
      dropped,
      reason,
      sum,
    )
    this.count(row.queue, state, 1)
  }

  /** Forgets a job that is final. */
  forget(seq: number, queue: string, state: FinalState): void {
    this.db.runOne('outOfEnded', seq)
    this.deleteBody(seq)
    this.count(queue, state, -1)
  }

  deleteBody(seq: number): void {
    this.db.runOne('deleteJob', seq)
    this.db.run('deletePast', seq)
  }

  // ── what it went through ─────────────────────────────────────────────────────

  past(seq: number): Past {
    return readPast(seq, this.db.get<PastRow>('past', seq))
  }

  changePast(seq: number, parts: Partial<Past>): void {
    this.db.run('writePast', ...pastValues(seq, { ...this.past(seq), ...parts }))
  }

  // ── unique keys ──────────────────────────────────────────────────────────────

  keyHolder(key: string): JobId | undefined {
    return this.db.get<{ id: JobId }>('keyHolder', key, this.now())?.id
  }

  takeKey({ key, hold }: UniqueClaim, id: JobId): void {
    this.db.run('takeKey', key, id, 'forMs' in hold ? this.now() + Math.round(hold.forMs) : null)
  }

  /** Frees the key of a job whose state no longer holds it; one that is held for a time stays. */
  freeKey({ unique_key: key, id }: Pick<JobRow, 'unique_key' | 'id'>): void {
    if (key !== null) this.db.run('freeKey', key, id)
  }
}

/** A job that lost a worker before. */
export function suspect({ crashes }: Pick<JobRow, 'crashes'>): 0 | 1 {
  return crashes > 0 ? 1 : 0
}
