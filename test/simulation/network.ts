/**
 * The way between a process and the store, with everything that can go wrong on it: requests and replies are late, come
 * in another order, or never; the store is away for a while, for all or for one.
 */
import type { WorkerId } from '../../src/job/ids.ts'
import type { Schedules, Store, WakeUp } from '../../src/stores/store.ts'
import type { Call, Reply } from '../checker/history.ts'
import type { SimulatedProcess } from './process.ts'
import { enqueuedJob, type Recorder } from './recorder.ts'
import { between, chance, type World } from './world.ts'
import { changeCall, changeReply } from './recorded-change.ts'

export interface NetworkFaults {
  readonly dropRequest: number
  readonly dropReply: number
  readonly dropHint: number
  /** The usual delay of a message is up to this. */
  readonly delayMs: number
  /** How often a message takes up to `slowMs` instead. */
  readonly slow: number
  readonly slowMs: number
}

/** Ticks come this often, and none may be left out. */
export interface SimulatedSchedule {
  readonly everyMs: number
}

export const CALM: NetworkFaults = {
  dropRequest: 0,
  dropReply: 0,
  dropHint: 0,
  delayMs: 2,
  slow: 0,
  slowMs: 0,
}

export class Network {
  faults: NetworkFaults = CALM
  /** Away for everybody: calls are refused at once, or vanish. */
  storeAway: 'no' | 'refuses' | 'silent' = 'no'
  readonly cutOff = new Set<SimulatedProcess>()
  readonly #world: World
  readonly #recorder: Recorder
  /** How long a worker waits for the answer to a cycle or a heartbeat. */
  readonly #workerPatienceMs: number

  constructor(world: World, recorder: Recorder, workerPatienceMs: number) {
    this.#world = world
    this.#recorder = recorder
    this.#workerPatienceMs = workerPatienceMs
  }

  /** One call from a process to the store and back. */
  call<T>(
    from: SimulatedProcess,
    call: Call,
    step: () => Promise<T>,
    reply: (answer: T) => Reply,
  ): Promise<T> {
    const op = this.#recorder.nextOp()
    this.#recorder.write({ type: 'invoke', op, node: from.name, call })
    const patienceMs = call.kind === 'cycle' || call.kind === 'heartbeat' ? this.#workerPatienceMs : Infinity
    const givenUpAtMs = from.clock.monotonicMs() + patienceMs
    return new Promise((resolve, reject) => {
      if (this.#lost(from, 'request', this.faults.dropRequest)) return
      this.#world.plan(this.#delay(from), null, () => {
        if (this.storeAway === 'silent' || this.cutOff.has(from)) return
        if (this.storeAway === 'refuses') {
          this.#deliver(from, () => {
            this.#recorder.write({ type: 'failed', op, node: from.name, error: 'ECONNREFUSED' })
            reject(new Error('connect ECONNREFUSED'))
          })
          return
        }
        this.#recorder.during(call, step).then(
          (answer) =>
            this.#answer(from, () => {
              // The caller has hung up by now: what arrives is read by nobody.
              if (from.clock.monotonicMs() >= givenUpAtMs)
                return this.#recorder.write({ type: 'unknown', op, node: from.name })
              this.#recorder.write({ type: 'answer', op, node: from.name, reply: reply(answer) })
              resolve(answer)
            }),
          (error: Error) =>
            this.#answer(from, () => {
              this.#recorder.write({ type: 'failed', op, node: from.name, error: error.message })
              reject(error)
            }),
        )
      })
    })
  }

  hint(to: SimulatedProcess, tell: () => void): void {
    if (this.storeAway !== 'no' || this.cutOff.has(to)) return
    if (this.#lost(to, 'wake-up', this.faults.dropHint)) return
    this.#world.plan(this.#delay(to), to, tell)
  }

  #answer(to: SimulatedProcess, deliver: () => void): void {
    if (this.#lost(to, 'reply', this.faults.dropReply) || this.storeAway !== 'no' || this.cutOff.has(to))
      return
    this.#deliver(to, deliver)
  }

  #deliver(to: SimulatedProcess, deliver: () => void): void {
    this.#world.plan(this.#delay(to), to, deliver)
  }

  #lost(node: SimulatedProcess, what: string, probability: number): boolean {
    const lost = probability > 0 && chance(this.#world.random, probability)
    if (lost) this.#recorder.write({ type: 'fault', kind: `${what} dropped`, node: node.name })
    return lost
  }

  #delay(node: SimulatedProcess): number {
    const { random } = this.#world
    const { delayMs, slow, slowMs } = this.faults
    if (slow === 0 || !chance(random, slow)) return between(random, 0.1, delayMs)
    this.#recorder.write({ type: 'fault', kind: 'message late', node: node.name })
    return between(random, delayMs, slowMs)
  }
}

/** The store as one process sees it. */
export function remoteStore(
  real: Store,
  network: Network,
  recorder: Recorder,
  from: SimulatedProcess,
  schedule: SimulatedSchedule | null,
): Store {
  const other = <T>(what: string, step: () => Promise<T>): Promise<T> =>
    network.call(from, { kind: 'other', what }, step, () => ({ kind: 'other' }))
  const mine = new Set<WorkerId>()
  return {
    kind: 'simulated',
    open: () => Promise.resolve(),
    close: () => Promise.resolve(),
    enqueue: (flush) =>
      network.call(
        from,
        { kind: 'enqueue', flush: flush.id, jobs: flush.jobs.map((job) => enqueuedJob(job)) },
        () => real.enqueue(flush),
        (jobs) => ({ kind: 'enqueue', jobs }),
      ),
    register: (worker, leaseMs, atOnce) => {
      mine.add(worker)
      return network.call(
        from,
        { kind: 'register', worker, leaseMs },
        () => told(real.register(worker, leaseMs, atOnce), () => recorder.lease('registered', worker)),
        () => ({ kind: 'register' }),
      )
    },
    retire: (worker) =>
      network.call(
        from,
        { kind: 'retire', worker },
        () => told(real.retire(worker), () => recorder.lease('retired', worker)),
        () => ({ kind: 'retire' }),
      ),
    cycle: (request) => {
      const { worker, settle, claim } = request
      return network.call(
        from,
        { kind: 'cycle', worker, settles: settle.map((one) => recorder.settleCall(one)), claim },
        () => real.cycle(request),
        ({ alive, settled, leases }) => ({ kind: 'cycle', alive, settled, leases: leases.map(leaseReply) }),
      )
    },
    heartbeat: (request) =>
      network.call(
        from,
        { kind: 'heartbeat', ...request },
        () => told(real.heartbeat(request), () => recorder.lease('renewed', request.worker)),
        ({ alive, tokens }) => ({ kind: 'heartbeat', alive, tokens }),
      ),
    subscribe: async (listener) => {
      const hear = (hint: WakeUp): void => {
        if (hint.type !== 'leased') return network.hint(from, () => listener(hint))
        if (!mine.has(hint.worker)) return
        const arrived = recorder.handed(from.name, hint.worker, leaseReply(hint.lease))
        network.hint(from, () => {
          arrived?.()
          listener(hint)
        })
      }
      const stop = await other('subscribe', () => real.subscribe(hear))
      return () => other('unsubscribe', stop)
    },
    upkeep: {
      promote: (limit) =>
        network.call(
          from,
          { kind: 'promote' },
          () => real.upkeep.promote(limit),
          ({ promoted }) => ({ kind: 'promote', promoted }),
        ),
      rescue: (limit) =>
        network.call(
          from,
          { kind: 'rescue' },
          () =>
            real.upkeep.rescue(limit).then((answer) => {
              for (const worker of answer.workers) recorder.lease('gone', worker)
              return answer
            }),
          ({ workers, jobs }) => ({ kind: 'rescue', workers, jobs: jobs.map(({ id, to }) => ({ id, to })) }),
        ),
      prune: (retention, limit) =>
        network.call(
          from,
          { kind: 'prune' },
          () => real.upkeep.prune(retention, limit),
          ({ pruned }) => ({ kind: 'prune', pruned }),
        ),
      lead: (candidate, ttlMs) => other('lead', () => real.upkeep.lead(candidate, ttlMs)),
    },
    notes: {
      put: (kind, id, text, ttlMs) => other('put note', () => real.notes.put(kind, id, text, ttlMs)),
      list: (kind, tx) => other('list notes', () => real.notes.list(kind, tx)),
    },
    schedules: schedule === null ? real.schedules : remoteSchedules(real, network, from, schedule),
    admin: {
      get: (id) => other('get', () => real.admin.get(id)),
      list: (query) => other('list', () => real.admin.list(query)),
      queues: () => other('queues', () => real.admin.queues()),
      setPaused: (queue, paused) => {
        const kind = paused ? ('pause' as const) : ('resume' as const)
        const step = (): Promise<void> => {
          recorder.write({ type: 'setting', queue, paused })
          return real.admin.setPaused(queue, paused)
        }
        return network.call(from, { kind, queue }, step, () => ({ kind }))
      },
      change: (filter, change, limit, after) => {
        const call = changeCall(filter, change)
        return network.call(
          from,
          call,
          () => real.admin.change(filter, change, limit, after),
          (answer) => changeReply(call, answer),
        )
      },
      deadGroups: (filter, limit, after) => other('group', () => real.admin.deadGroups(filter, limit, after)),
    },
  }
}

function remoteSchedules(
  { schedules }: Store,
  network: Network,
  from: SimulatedProcess,
  { everyMs }: SimulatedSchedule,
): Schedules {
  const other = <T>(what: string, step: () => Promise<T>): Promise<T> =>
    network.call(from, { kind: 'other', what }, step, () => ({ kind: 'other' }))
  return {
    put: (id, spec) => other('put schedule', () => schedules.put(id, spec)),
    list: () => other('list schedules', () => schedules.list()),
    fire: (id, tick, nextTick, job) =>
      network.call(
        from,
        { kind: 'fire', schedule: id, tick, everyMs, job: enqueuedJob(job, `${id} ${tick}`) },
        () => schedules.fire(id, tick, nextTick, job),
        (outcome) => ({ kind: 'fire', outcome }),
      ),
  }
}

function leaseReply({ token, jobs }: Awaited<ReturnType<Store['cycle']>>['leases'][number]) {
  return { token, jobs: jobs.map(({ id, attempt, crashes }) => ({ id, attempt, crashes })) }
}

/** The in-memory store has done its step when the call returns: what it then says of the lease is part of the step. */
function told<T>(answer: Promise<T>, tell: () => void): Promise<T> {
  tell()
  return answer
}
