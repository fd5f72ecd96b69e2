/** Settles, grouped by their lease. */
import type { Token } from '../job/ids.ts'
import type { SettleRequest } from './store.ts'

/** The settles of one lease, in the order of the call. */
export interface LeaseSettles {
  readonly token: Token
  /** The index of each request in the call. */
  readonly places: number[]
  readonly requests: SettleRequest[]
}

/** Leases come in the order in which the call first names them. */
export function byLease(requests: readonly SettleRequest[]): LeaseSettles[] {
  const leases = new Map<Token, LeaseSettles>()
  for (const [place, request] of requests.entries()) {
    const { token } = request
    let lease = leases.get(token)
    if (lease === undefined) leases.set(token, (lease = { token, places: [], requests: [] }))
    lease.places.push(place)
    lease.requests.push(request)
  }
  return [...leases.values()]
}
