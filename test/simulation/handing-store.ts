/**
 * The in-memory store, with hand-offs: for tests of what workers make of them. Each call takes its steps in the store at
 * once, one after the other, so nothing comes between them.
 */
import type { Token, WorkerId } from '../../src/job/ids.ts'
import { Listeners } from '../../src/stores/listeners.ts'
import type { CycleAnswer, CycleRequest, Lease, Offer, Store, WakeUp } from '../../src/stores/store.ts'

interface OpenOffer {
  readonly nth: number
  readonly queues: readonly string[]
  readonly overAt: number
  left: number
}

export function handingStore(inner: Store, now: () => number): Store {
  const handing = new Handing(inner, now)
  return {
    ...inner,
    enqueue: (flush) => handing.enqueue(flush),
    cycle: (request) => handing.cycle(request),
    retire: (worker) => handing.retire(worker),
    subscribe: (listener) => handing.subscribe(listener),
  }
}

class Handing {
  readonly #inner: Store
  readonly #now: () => number
  readonly #offers = new Map<WorkerId, OpenOffer>()
  readonly #handed = new Map<WorkerId, Lease[]>()
  readonly #listeners = new Listeners()
  /** Queues whose new jobs are handed over, or may be: their wake-ups wait. */
  #silent: ReadonlySet<string> = new Set()
  #isListening = false

  constructor(inner: Store, now: () => number) {
    this.#inner = inner
    this.#now = now
  }

  async subscribe(listener: (hint: WakeUp) => void): Promise<() => Promise<void>> {
    if (!this.#isListening) {
      this.#isListening = true
      await this.#inner.subscribe((hint) => this.#hear(hint))
    }
    const remove = this.#listeners.add(listener)
    return async () => void remove()
  }

  #hear(hint: WakeUp): void {
    if (hint.type !== 'ready' || !this.#silent.has(hint.queue)) this.#listeners.tell(hint)
  }

  enqueue(flush: Parameters<Store['enqueue']>[0]): ReturnType<Store['enqueue']> {
    const queues = new Set(flush.jobs.map(({ queue }) => queue))
    const offered = [...queues].filter((queue) => this.#pick(queue) !== undefined)
    this.#silent = new Set(offered)
    const answer = this.#inner.enqueue(flush)
    this.#silent = new Set()
    for (const queue of offered) this.#handOver(queue, flush.jobs.filter((job) => job.queue === queue).length)
    return answer
  }

  #pick(queue: string): readonly [WorkerId, OpenOffer] | undefined {
    for (const [worker, offer] of this.#offers)
      if (offer.queues.includes(queue) && offer.overAt > this.#now()) return [worker, offer]
    return undefined
  }

  #handOver(queue: string, jobs: number): void {
    const [worker, offer] = this.#pick(queue) ?? []
    if (worker === undefined || offer === undefined) return this.#listeners.tell({ type: 'ready', queue })
    const limit = Math.min(jobs, offer.left)
    offer.left -= limit
    if (offer.left === 0) this.#offers.delete(worker)
    const claim = { queue, limit, suspects: false }
    void this.#inner.cycle({ worker, settle: [], claim }).then(({ leases: [lease] }) => {
      if (lease === undefined || lease.jobs.length < jobs) this.#listeners.tell({ type: 'ready', queue })
      if (lease === undefined) return
      this.#handed.set(worker, [...(this.#handed.get(worker) ?? []), lease])
      this.#listeners.tell({ type: 'leased', worker, nth: offer.nth, lease })
    })
  }

  cycle(request: CycleRequest): Promise<CycleAnswer> {
    const { worker, offer, claim } = request
    if (offer === undefined) return this.#inner.cycle(request)
    this.#close(worker, offer)
    const answered = this.#inner.cycle(request)
    return answered.then((answer) => {
      const taken = answer.leases.reduce((count, { jobs }) => count + jobs.length, 0)
      const isOpen = answer.alive && claim !== null && taken < claim.limit && offer.jobs > taken
      if (!isOpen) return answer
      const { nth, queues, forMs, jobs } = offer
      this.#offers.set(worker, { nth, queues, overAt: this.#now() + forMs, left: jobs - taken })
      return { ...answer, offeredAt: this.#now() }
    })
  }

  #close(worker: WorkerId, { received }: Offer): void {
    this.#offers.delete(worker)
    for (const { token, jobs } of this.#handed.get(worker) ?? [])
      if (!received.includes(token)) this.#release(worker, token, jobs.length)
    this.#handed.delete(worker)
  }

  #release(worker: WorkerId, token: Token, jobs: number): void {
    const settlement = { type: 'release' } as const
    const settle = Array.from({ length: jobs }, (_, position) => ({ token, position, settlement, runMs: 0 }))
    void this.#inner.cycle({ worker, settle, claim: null })
  }

  retire(worker: WorkerId): Promise<void> {
    this.#offers.delete(worker)
    this.#handed.delete(worker)
    return this.#inner.retire(worker)
  }
}
