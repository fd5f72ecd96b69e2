/**
 * The store calls of workers. Workers call in loops, so nearly every call is sent once, within a time that depends on
 * the worker's lease; an unanswered one is repeated by the next turn of the loop.
 */
import { HoldfastError } from '../errors.ts'
import type { WorkerId } from '../job/ids.ts'
import {
  SLOW_WORKER,
  type CycleAnswer,
  type CycleRequest,
  type HeartbeatAnswer,
  type HeartbeatRequest,
  type Pulse,
  type SettleAnswer,
  type SettleRequest,
} from '../stores/store.ts'
import type { Connection, Operation } from './connection.ts'
import { WORKER } from './notes.ts'

/** Notes are best effort: one that cannot be written must not hold up anything. */
const NOTE_TIMEOUT_MS = 2_000

/** A worker that registers. */
export interface Registration {
  readonly worker: WorkerId
  readonly leaseMs: number
  /** See `Store.register`. */
  readonly atOnce: number | undefined
}

export class WorkerCalls {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** For a worker that starts: repeated, within the timeout of holdfast(). A repeat renews the lease. */
  register({ worker, leaseMs, atOnce }: Registration): Promise<void> {
    return this.#connection.repeat({
      doing: 'register the worker',
      deadline: this.#connection.deadline(),
      send: (store) => store.register(worker, leaseMs, atOnce),
    })
  }

  /** For a worker that the store has forgotten: its next renewal tries again. */
  registerAgain({ worker, leaseMs, atOnce }: Registration, withinMs: number): Promise<void> {
    return this.#once('register the worker', withinMs, (store) => store.register(worker, leaseMs, atOnce))
  }

  async cycle(request: CycleRequest, withinMs: number): Promise<CycleAnswer> {
    const answer = await this.#once('settle and claim', withinMs, (store, sendWithinMs) =>
      store.cycle(request, sendWithinMs),
    )
    checkSettled(answer, request)
    return answer
  }

  /**
   * A settle of a manual message: repeated, within the timeout of holdfast(). `already` means that an earlier try wrote
   * it.
   */
  async settle(
    worker: WorkerId,
    request: SettleRequest,
  ): Promise<{ readonly alive: boolean; readonly answer: SettleAnswer }> {
    const cycle: CycleRequest = { worker, settle: [request], claim: null }
    const answer = await this.#connection.repeat({
      doing: 'settle a message',
      deadline: this.#connection.deadline(),
      send: (store, withinMs) => store.cycle(cycle, withinMs),
    })
    checkSettled(answer, cycle)
    return { alive: answer.alive, answer: answer.settled[0] as SettleAnswer }
  }

  heartbeat(request: HeartbeatRequest, withinMs: number): Promise<HeartbeatAnswer> {
    return this.#once('send a heartbeat', withinMs, (store) => store.heartbeat(request))
  }

  /** Renews the lease from outside the event loop; null if the store cannot. */
  keepAlive(worker: WorkerId, leaseMs: number): Pulse | null {
    return this.#connection.store.keepAlive?.(worker, leaseMs) ?? null
  }

  /** If this fails, the worker is rescued when its lease expires, with nothing left to rescue. */
  retire(worker: WorkerId, withinMs: number): Promise<void> {
    return this.#once('retire', withinMs, (store) => store.retire(worker))
  }

  /** Publishes that a worker takes up to `startMs` to start a job. */
  async putSlow(id: string, startMs: number, ttlMs: number, withinMs: number): Promise<void> {
    await this.#once('tell how slow the store is', withinMs, (store) =>
      store.notes.put(SLOW_WORKER, id, String(startMs), ttlMs),
    )
  }

  removeSlow(id: string, withinMs: number): Promise<boolean> {
    return this.#once('remove a note', withinMs, (store) => store.notes.put(SLOW_WORKER, id, null, null))
  }

  /** The status that a worker publishes to the fleet. */
  async putStatus(id: string, text: string, ttlMs: number): Promise<void> {
    await this.#once('list a worker', NOTE_TIMEOUT_MS, (store) => store.notes.put(WORKER, id, text, ttlMs))
  }

  removeStatus(id: string): Promise<boolean> {
    return this.#once('take a worker off the list', NOTE_TIMEOUT_MS, (store) =>
      store.notes.put(WORKER, id, null, null),
    )
  }

  #once<T>(doing: string, withinMs: number, send: Operation<T>['send']): Promise<T> {
    return this.#connection.once({ doing, deadline: this.#connection.deadline(withinMs), send })
  }
}

/** A settle without an answer must not pass for one whose lease is lost: its job would end without anybody's notice. */
function checkSettled({ settled }: CycleAnswer, { settle }: CycleRequest): void {
  if (settled.length === settle.length) return
  const message = `The store answered ${settled.length} of ${settle.length} settles.`
  throw new HoldfastError('HF_STORE_CONTRACT', message)
}
