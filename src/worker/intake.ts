/**
 * How much to claim, and from which queue. A worker takes no more than its free slots plus what it finishes in about
 * 50 ms, so that nothing is hoarded; among queues with work it keeps to their weights. A queue that answered with less
 * than was asked for is dry until a wake-up or the next poll.
 */
import type { ClaimRequest, Lease } from '../stores/store.ts'
import type { BatchRoom } from './backlog.ts'

const PREFETCH_MS = 50
/** The rate is measured over this much of the past and at least as much of the present. */
const WINDOW_MS = 50

interface QueueIntake {
  readonly name: string
  readonly weight: number
  dry: boolean
  /** Counts wake-ups, so that an empty answer is not believed if one came after its question. */
  wakeUps: number
  /** Jobs taken, divided by the weight: the queue with the least is next. */
  served: number
}

/** What is claimed and not started. */
interface Claimed {
  /** Plain jobs that wait for a slot. */
  readonly inLine: number
  /** What batch handlers take of this queue, beyond that. */
  room(queue: string): BatchRoom
}

export interface Claim {
  readonly request: ClaimRequest
  readonly wakeUpsBefore: number
}

export class Intake {
  readonly #queues: readonly QueueIntake[]
  readonly #batchSize: number
  /** Where the queue stood that was served last: a queue that comes back starts level with it. */
  #level = 0
  #finished = 0
  /** One claim at a time: leases arrive in the order of their tokens, and jobs are started in it (see `Store.register`). */
  #claiming = false
  #windowStartMs: number
  #perMs = 0

  constructor(weights: ReadonlyMap<string, number>, batchSize: number, nowMs: number) {
    this.#queues = [...weights].map(([name, weight]) => ({
      name,
      weight,
      dry: false,
      wakeUps: 0,
      served: 0,
    }))
    this.#batchSize = batchSize
    this.#windowStartMs = nowMs
  }

  noteFinished(): void {
    this.#finished++
  }

  wakeUp(queue: string): boolean {
    const found = this.#queues.find((one) => one.name === queue)
    if (found === undefined) return false
    found.wakeUps++
    this.#revive(found)
    return true
  }

  /** Time to look at every queue, whatever the wake-ups said. */
  poll(): void {
    for (const queue of this.#queues) this.#revive(queue)
  }

  /** What to claim now; null for nothing. */
  next(slots: number, claimed: Claimed, suspects: boolean, nowMs: number): Claim | null {
    if (this.#claiming) return null
    const ahead = this.#prefetch(nowMs)
    const plain = plainWanted(slots, ahead, claimed.inLine)
    let queue: QueueIntake | undefined
    let limit = 0
    for (const one of this.#queues) {
      if (one.dry || (queue !== undefined && one.served >= queue.served)) continue
      const { perSlot, gathered } = claimed.room(one.name)
      const batched = perSlot === 0 ? 0 : batchedWanted(slots * perSlot, ahead, gathered)
      if (plain <= 0 && batched <= 0) continue
      queue = one
      limit = Math.min(Math.max(plain, batched), this.#batchSize)
    }
    if (queue === undefined) return null
    return { request: { queue: queue.name, limit, suspects }, wakeUpsBefore: queue.wakeUps }
  }

  sent(claim: Claim | null): void {
    if (claim !== null) this.#claiming = true
  }

  /** Its call has ended, well or badly. */
  landed(claim: Claim | null): void {
    if (claim !== null) this.#claiming = false
  }

  answered({ request, wakeUpsBefore }: Claim, leases: readonly Lease[]): void {
    const queue = this.#queues.find((one) => one.name === request.queue)
    if (queue === undefined) return
    const taken = leases.reduce((count, lease) => count + lease.jobs.length, 0)
    this.#level = Math.max(this.#level, queue.served)
    queue.served += taken / queue.weight
    // An older "empty" must not overtake a wake-up that came after the question was sent.
    if (taken < request.limit && queue.wakeUps === wakeUpsBefore) queue.dry = true
  }

  /** A queue that had nothing to give has no claim on the past. */
  #revive(queue: QueueIntake): void {
    if (!queue.dry) return
    queue.dry = false
    queue.served = Math.max(queue.served, this.#level)
  }

  /** How many jobs this worker finishes in PREFETCH_MS, going by what it finished lately. */
  #prefetch(nowMs: number): number {
    const elapsedMs = nowMs - this.#windowStartMs
    if (elapsedMs >= WINDOW_MS) {
      this.#perMs = (this.#perMs * WINDOW_MS + this.#finished) / (WINDOW_MS + elapsedMs)
      this.#finished = 0
      this.#windowStartMs = nowMs
    }
    return Math.floor(this.#perMs * PREFETCH_MS)
  }
}

/** How many more, where so many can start, so many finish soon, and so many are there. */
function plainWanted(slots: number, ahead: number, coming: number): number {
  // Refill at half: a claim for each job that finishes would make the batches small.
  return coming > 0 && coming > ahead / 2 ? 0 : slots + ahead - coming
}

/** As above, but what is gathered may wait for more of its kind. */
function batchedWanted(fits: number, ahead: number, coming: number): number {
  return coming >= fits && coming - fits > ahead / 2 ? 0 : fits + ahead - coming
}
