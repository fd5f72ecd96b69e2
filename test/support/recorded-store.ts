/**
 * Records what happens between a real store and those who use it, in the checker's history format and in real time. All
 * nodes of a history live in this process and share its clock, which is that of the machine: what a database on the
 * same machine has stamped itself can be put between the events where it belongs.
 */
import { HoldfastError } from '../../src/errors.ts'
import type { WorkerId } from '../../src/job/ids.ts'
import { systemClock } from '../../src/std/clock.ts'
import { withDeadline } from '../../src/std/deadline.ts'
import { sqlState } from '../../src/stores/postgres/server-errors.ts'
import type { Lease, SettleRequest, Store, WakeUp } from '../../src/stores/store.ts'
import { Offers, type HandedLease } from '../../src/worker/offers.ts'
import type {
  Call,
  HistoryEvent,
  LeaseReply,
  Reply,
  SettleCall,
  SettlementType,
  SnapshotJob,
  State,
} from '../checker/history.ts'
import { enqueuedJob, recordedType } from '../simulation/recorder.ts'
import { changeCall, changeReply } from '../simulation/recorded-change.ts'

type Without<Event, Fields extends string> = Event extends HistoryEvent ? Omit<Event, Fields> : never
type Unstamped = Without<HistoryEvent, 'seq' | 't'>
/** An event with its time, but without its place in the order. */
export type TimedEvent = Without<HistoryEvent, 'seq'>

/** What one worker was granted under a token. */
interface Granted {
  readonly worker: string
  readonly ids: readonly string[]
}

/** A claim that was answered. */
export interface ClaimAnswered {
  readonly node: string
  readonly invokedAt: number
  readonly at: number
}

export class History {
  /** Called at each claim that is answered, before its worker knows of it. */
  onClaimAnswered: (claim: ClaimAnswered) => void = () => undefined
  readonly #written: TimedEvent[] = []
  readonly #granted = new Map<number, Granted>()
  readonly #asked = new Map<string, SettlementType>()
  readonly #offsetMs = wallOffsetMs()
  #ops = 0

  /** Milliseconds since 1970, to the microsecond; only grows. */
  now(): number {
    return this.#offsetMs + performance.now()
  }

  write(event: Unstamped): number {
    const t = this.now()
    this.#written.push({ t, ...event })
    return t
  }

  begin(node: string, call: Call): { readonly op: number; readonly at: number } {
    const op = this.#ops++
    if (call.kind === 'cycle') for (const settle of call.settles) this.#asked.set(placeOf(settle), settle.to)
    return { op, at: this.write({ type: 'invoke', op, node, call }) }
  }

  grant(worker: string, { token, jobs }: Lease): LeaseReply {
    this.#granted.set(token, { worker, ids: jobs.map(({ id }) => id) })
    return { token, jobs: jobs.map(({ id, attempt, crashes }) => ({ id, attempt, crashes })) }
  }

  /** A lease that was handed over has arrived: to the checker, the answer to a claim that was sent when it was granted. */
  handed(node: string, worker: WorkerId, lease: Lease): void {
    const op = this.#ops++
    const call = { kind: 'cycle', worker, settles: [], claim: null } as const
    this.#written.push({ t: lease.claimedAt, type: 'invoke', op, node, call })
    const leases = [this.grant(worker, lease)]
    this.write({ type: 'answer', op, node, reply: { kind: 'cycle', alive: true, settled: [], leases } })
  }

  settleCall({ token, position, settlement }: SettleRequest): SettleCall {
    const job = this.#granted.get(token)?.ids[position] ?? 'unknown'
    return { token, position, job, to: recordedType(settlement) }
  }

  /** As its worker asked for it; undefined where no call of this history did. */
  settlementOf(token: number, position: number): SettlementType | undefined {
    return this.#asked.get(placeOf({ token, position }))
  }

  /** Records a handler from its start to its end. */
  async run<T>(node: string, { job, fence, input }: HandlerFacts, work: () => Promise<T>): Promise<T> {
    const token = Number(fence)
    const worker = this.#granted.get(token)?.worker ?? 'unknown'
    const about = { type: 'run', node, worker, job: job.id, token, attempt: job.attempt } as const
    this.write({ ...about, what: 'start', payload: JSON.stringify(input) })
    try {
      return await work()
    } finally {
      this.write({ ...about, what: 'end' })
    }
  }

  /** All of it in order, with what the store itself kept, if it did, where it happened. */
  events(store: string, kept: readonly TimedEvent[] | null = null): HistoryEvent[] {
    const [first] = this.#written
    const begin = { type: 'begin', version: 1, store, moves: kept !== null, t: first?.t ?? 0 } as const
    const all = [...this.#written, ...(kept ?? [])].sort((a, b) => a.t - b.t)
    const floor = Math.min(begin.t, all[0]?.t ?? begin.t)
    return [{ ...begin, t: floor }, ...all].map((event, seq) => ({ seq, ...event }))
  }
}

interface HandlerFacts {
  readonly job: { readonly id: string; readonly attempt: number }
  readonly fence: bigint
  readonly input: unknown
}

function placeOf({ token, position }: { readonly token: number; readonly position: number }): string {
  return `${token}/${position}`
}

/**
 * What `performance.now()` lacks to the wall clock, which tells whole milliseconds: every look at both says where it is
 * at least and at most, however often we are interrupted, and a look at the turn of a millisecond says it best.
 */
function wallOffsetMs(): number {
  let least = -Infinity
  let most = Infinity
  const until = performance.now() + 20
  for (let before = performance.now(); before < until && most - least > 0.005; before = performance.now()) {
    const wall = Date.now()
    most = Math.min(most, wall + 1 - before)
    least = Math.max(least, wall - performance.now())
  }
  return (least + most) / 2
}

export interface RecordedStoreOptions {
  readonly history: History
  /** Who uses this store: at most one worker. */
  readonly node: string
  /**
   * How long its worker waits for a cycle or a heartbeat. What is answered later reaches nobody: it is given up here a
   * moment sooner, so that the history never tells of an answer that the worker did not read.
   */
  readonly workerPatienceMs: number
  /** Told of every wake-up, before whoever subscribed. */
  readonly onHint?: (hint: WakeUp) => void
}

const SOONER_MS = 10

export function recordedStore(real: Store, options: RecordedStoreOptions): Store {
  const { history, node } = options
  const workerPatienceMs = options.workerPatienceMs - SOONER_MS
  const record = async <T>(call: Call, step: () => Promise<T>, reply: (answer: T) => Reply): Promise<T> => {
    const { op, at } = history.begin(node, call)
    const isWorkers = call.kind === 'cycle' || call.kind === 'heartbeat'
    try {
      const answer = await (isWorkers ? withDeadline(systemClock, workerPatienceMs, step(), late) : step())
      const answeredAt = history.write({ type: 'answer', op, node, reply: reply(answer) })
      if (call.kind === 'cycle' && call.claim !== null)
        history.onClaimAnswered({ node, invokedAt: at, at: answeredAt })
      return answer
    } catch (error) {
      if (didNothing(error, call)) history.write({ type: 'failed', op, node, error: String(error) })
      else history.write({ type: 'unknown', op, node })
      throw error
    }
  }
  const other = <T>(what: string, step: () => Promise<T>): Promise<T> =>
    record({ kind: 'other', what }, step, () => ({ kind: 'other' }))
  let registered: WorkerId | undefined
  // What the worker makes of the leases that are handed over to it.
  const offers = new Offers()
  const took = (handed: HandedLease | null): void => {
    if (handed !== null && registered !== undefined) history.handed(node, registered, handed.lease)
  }
  return {
    kind: real.kind,
    open: () => real.open(),
    close: () => real.close(),
    enqueue: (flush) =>
      record(
        { kind: 'enqueue', flush: flush.id, jobs: flush.jobs.map((job) => enqueuedJob(job)) },
        () => real.enqueue(flush),
        (jobs) => ({ kind: 'enqueue', jobs }),
      ),
    register: (worker, leaseMs) => {
      registered = worker
      return record(
        { kind: 'register', worker, leaseMs },
        () => real.register(worker, leaseMs),
        () => ({ kind: 'register' }),
      )
    },
    retire: (worker) =>
      record(
        { kind: 'retire', worker },
        () => real.retire(worker),
        () => ({ kind: 'retire' }),
      ),
    cycle: async (request) => {
      const { worker, settle, claim, offer } = request
      const sent = offer === undefined ? undefined : offers.send(offer, history.now())
      try {
        const answer = await record(
          { kind: 'cycle', worker, settles: settle.map((one) => history.settleCall(one)), claim },
          () => real.cycle(request),
          ({ alive, settled, leases }) => {
            return { kind: 'cycle', alive, settled, leases: leases.map((one) => history.grant(worker, one)) }
          },
        )
        if (sent !== undefined) for (const handed of offers.answered(sent, answer.offeredAt)) took(handed)
        return answer
      } catch (error) {
        if (sent !== undefined) offers.failed(sent)
        throw error
      }
    },
    heartbeat: (request) =>
      record(
        { kind: 'heartbeat', ...request },
        () => real.heartbeat(request),
        ({ alive, tokens }) => ({ kind: 'heartbeat', alive, tokens }),
      ),
    subscribe: async (listener) => {
      const tell = (hint: WakeUp): void => {
        options.onHint?.(hint)
        if (hint.type === 'leased' && hint.worker === registered) took(offers.hear(hint))
        listener(hint)
      }
      const stop = await other('subscribe', () => real.subscribe(tell))
      return () => other('unsubscribe', stop)
    },
    upkeep: {
      promote: (limit) =>
        record(
          { kind: 'promote' },
          () => real.upkeep.promote(limit),
          ({ promoted }) => ({ kind: 'promote', promoted }),
        ),
      rescue: (limit) =>
        record(
          { kind: 'rescue' },
          () => real.upkeep.rescue(limit),
          ({ workers, jobs }) => ({ kind: 'rescue', workers, jobs: jobs.map(({ id, to }) => ({ id, to })) }),
        ),
      prune: (retention, limit) =>
        record(
          { kind: 'prune' },
          () => real.upkeep.prune(retention, limit),
          ({ pruned }) => ({ kind: 'prune', pruned }),
        ),
      lead: (candidate, ttlMs) => other('lead', () => real.upkeep.lead(candidate, ttlMs)),
    },
    schedules: real.schedules,
    notes: real.notes,
    admin: {
      get: (id) => other('get', () => real.admin.get(id)),
      list: (query) => other('list', () => real.admin.list(query)),
      queues: () => other('queues', () => real.admin.queues()),
      setPaused: (queue, paused) => {
        const kind = paused ? ('pause' as const) : ('resume' as const)
        return record(
          { kind, queue },
          () => real.admin.setPaused(queue, paused),
          () => ({ kind }),
        )
      },
      change: (filter, change, limit, after) => {
        const call = changeCall(filter, change)
        return record(
          call,
          () => real.admin.change(filter, change, limit, after),
          (answer) => changeReply(call, answer),
        )
      },
      deadGroups: (filter, limit, after) => other('group', () => real.admin.deadGroups(filter, limit, after)),
    },
  }
}

function late(): HoldfastError {
  return new HoldfastError('HF_STORE_UNREACHABLE', 'Answered too late for anybody to read it.')
}

/** Refused before anything was written. Closing is not among them: it cuts off what is under way. */
const REFUSALS: ReadonlySet<string> = new Set([
  'HF_STORE_CONTRACT',
  'HF_STORE_FULL',
  'HF_BAD_OPTION',
  'HF_BAD_STORE',
])
/** Not let in (starting up, too many), read-only, undone as a whole: deadlock, serialization, cancelled. */
const UNDONE: ReadonlySet<string> = new Set(['57P03', '53300', '25006', '40P01', '40001', '57014'])
/** Of several statements, so that an error of one says nothing of those before. */
const MANY_STEPS: ReadonlySet<string> = new Set(['cycle', 'prune'])

/** Whether a call that failed has certainly left no trace; a doubt is none. */
export function didNothing(error: unknown, { kind }: Call): boolean {
  if (error instanceof HoldfastError) return REFUSALS.has(error.code)
  if (MANY_STEPS.has(kind) || !(error instanceof Error)) return false
  return 'code' in error && error.code === 'ECONNREFUSED' ? true : UNDONE.has(sqlState(error) ?? '')
}

/** Every job of the store, and what it counts itself. */
export async function snapshot(store: Store): Promise<Unstamped & { type: 'snapshot' }> {
  const jobs: SnapshotJob[] = []
  let after = null
  do {
    const page: Awaited<ReturnType<Store['admin']['list']>> = await store.admin.list({ limit: 1_000, after })
    for (const job of page.jobs) {
      const { id, queue, state, attempt, crashes } = job
      const lease = job.state === 'running' ? job : { token: null, worker: null }
      jobs.push({ id, queue, state, attempt, crashes, token: lease.token, worker: lease.worker })
    }
    after = page.next
  } while (after !== null)
  const queues = await store.admin.queues()
  const counters = queues.map(({ queue, counts }): [string, Record<State, number>] => [queue, { ...counts }])
  return { type: 'snapshot', jobs, counters: Object.fromEntries(counters) }
}
