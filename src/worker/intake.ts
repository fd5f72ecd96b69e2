/**
 * How much to claim, and from which queue. A worker takes no more than its free slots plus what it finishes in about
 * 50 ms, so that nothing is hoarded; among queues with work it keeps to their weights. A queue that answered with less
 * than was asked for is dry until a wake-up or the next poll.
 */
import type { ClaimRequest, Lease } from '../stores/store.ts'

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

export interface Claim {
  readonly request: ClaimRequest
  readonly wakeUpsBefore: number
  /** Whether it can take whatever the queue has: a claim beside another leaves suspects to that one. */
  readonly seesAll: boolean
}

export class Intake {
  readonly #queues: readonly QueueIntake[]
  readonly #batchSize: number
  /** Where the queue stood that was served last: a queue that comes back starts level with it. */
  #level = 0
  #finished = 0
  /** Jobs that the claims under way may bring. */
  #claiming = 0
  #windowStartMs: number
  #perMs = 0

  constructor(weights: ReadonlyMap<string, number>, batchSize: number, nowMs: number) {
    this.#queues = [...weights].map(([name, weight]) => ({ name, weight, dry: false, wakeUps: 0, served: 0 }))
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

  /** What to claim now, given the free slots and the claimed jobs that wait for one; null for nothing. */
  next(freeSlots: number, waiting: number, suspects: boolean, nowMs: number): Claim | null {
    const ahead = this.#prefetch(nowMs)
    const coming = waiting + this.#claiming
    // Refill at half: a claim for each job that finishes would make the batches small.
    if (coming > 0 && coming > ahead / 2) return null
    const limit = Math.min(freeSlots + ahead - coming, this.#batchSize)
    const queue = limit > 0 ? this.#nextQueue() : undefined
    if (queue === undefined) return null
    const alone = this.#claiming === 0
    return {
      request: { queue: queue.name, limit, suspects: suspects && alone },
      wakeUpsBefore: queue.wakeUps,
      seesAll: alone || !suspects,
    }
  }

  sent(claim: Claim | null): void {
    this.#claiming += claim?.request.limit ?? 0
  }

  /** Its call has ended, well or badly. */
  landed(claim: Claim | null): void {
    this.#claiming -= claim?.request.limit ?? 0
  }

  answered({ request, wakeUpsBefore, seesAll }: Claim, leases: readonly Lease[]): void {
    const queue = this.#queues.find((one) => one.name === request.queue)
    if (queue === undefined) return
    const taken = leases.reduce((count, lease) => count + lease.jobs.length, 0)
    this.#level = Math.max(this.#level, queue.served)
    queue.served += taken / queue.weight
    // An older "empty" must not overtake a wake-up that came after the question was sent.
    if (seesAll && taken < request.limit && queue.wakeUps === wakeUpsBefore) queue.dry = true
  }

  #nextQueue(): QueueIntake | undefined {
    let next: QueueIntake | undefined
    for (const queue of this.#queues)
      if (!queue.dry && (next === undefined || queue.served < next.served)) next = queue
    return next
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
