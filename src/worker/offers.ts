/**
 * A worker's offers to take jobs as they are enqueued (`Offer` in `store.ts`), and which of the leases that are handed over
 * it runs: those of its newest offer, once the store has answered that it is open. All others will be released, or are
 * already.
 */
import type { Token } from '../job/ids.ts'
import type { Lease, Offer, WakeUp } from '../stores/store.ts'
import type { PlannedOffer } from './plan.ts'

export type LeasedHint = Extract<WakeUp, { readonly type: 'leased' }>

export interface HandedLease {
  readonly lease: Lease
  /** The store granted it then or later, by the local monotonic clock. */
  readonly askedMs: number
}

interface Newest {
  readonly nth: number
  readonly sentMs: number
  /** The store's time when it opened; undefined until that is answered. */
  readonly offeredAt?: number
}

export class Offers {
  #nth = 0
  /** Undefined if there is none, or if its call failed: then nobody knows whether it is open. */
  #newest: Newest | undefined
  /** Leases that have arrived, as far as the store has not answered that it knows. */
  #received: readonly Token[] = []
  /** What overtook the answer that the offer is open. */
  #early: LeasedHint[] = []

  send(planned: PlannedOffer, sentMs: number): Offer {
    this.#nth++
    this.#newest = { nth: this.#nth, sentMs }
    this.#early = []
    return { ...planned, nth: this.#nth, received: this.#received }
  }

  /** Returns what was handed over meanwhile. */
  answered(offer: Offer, offeredAt: number | undefined): HandedLease[] {
    this.#received = this.#received.filter((token) => !offer.received.includes(token))
    const newest = this.#newest
    if (newest?.nth !== offer.nth) return []
    this.#newest = offeredAt === undefined ? undefined : { ...newest, offeredAt }
    const early = this.#early
    this.#early = []
    return early.flatMap((hint) => this.hear(hint) ?? [])
  }

  failed(offer: Offer): void {
    if (this.#newest?.nth === offer.nth) this.clear()
  }

  /** Null for a lease that must not run, or not yet. */
  hear(hint: LeasedHint): HandedLease | null {
    const { lease } = hint
    const newest = this.#newest
    if (hint.nth !== newest?.nth || this.#received.includes(lease.token)) return null
    const { sentMs, offeredAt } = newest
    if (offeredAt === undefined) {
      this.#early.push(hint)
      return null
    }
    this.#received = [...this.#received, lease.token]
    // The offer opened after it was sent, so by the store's clock the lease is at least that much younger.
    return { lease, askedMs: sentMs + Math.max(0, lease.claimedAt - offeredAt) }
  }

  /** There is no offer, as far as this worker is concerned. */
  clear(): void {
    this.#newest = undefined
    this.#early = []
  }
}
