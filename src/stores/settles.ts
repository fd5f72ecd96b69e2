/**
 * The settles of a call, before anything of them is written: what no store can write is refused, the rest is grouped by
 * lease.
 */
import { HoldfastError } from '../errors.ts'
import type { Token } from '../job/ids.ts'
import { SETTLEMENT_TYPES, type Settlement } from '../job/settlement.ts'
import type { SettleRequest } from './store.ts'
import { checkText } from './write-check.ts'

/** For the `default` of a switch over all kinds. */
export function unknownSettlement(settlement: never): never {
  const { type } = settlement as { readonly type: unknown }
  throw new HoldfastError(
    'HF_STORE_CONTRACT',
    `There is no settlement of the kind ${JSON.stringify(type)}.`,
    { hint: `Use one of these: ${SETTLEMENT_TYPES.join(', ')}.` },
  )
}

/** Kinds of which `forget` leaves nothing. */
const FORGETTABLE: Readonly<Record<Settlement['type'], boolean>> = {
  completed: true,
  retry: false,
  dead: true,
  snooze: false,
  release: false,
  confirm: false,
  cancelled: false,
}

/** Whether the settle deletes its job. */
export function isForgotten({ settlement, forget }: SettleRequest): boolean {
  return forget === true && FORGETTABLE[settlement.type]
}

/** For stores whose server does not check these values. */
export function checkSettles(settles: readonly SettleRequest[]): void {
  for (const { settlement, runMs } of settles) {
    checkNumber('runMs', runMs)
    checkSettlement(settlement)
  }
}

function checkSettlement(settlement: Settlement): void {
  switch (settlement.type) {
    case 'retry':
    case 'snooze':
      return checkNumber('delayMs', settlement.delayMs)
    case 'cancelled':
      return checkText('The reason of a cancel', settlement.reason)
    case 'completed':
    case 'dead':
    case 'release':
    case 'confirm':
      return
    default:
      return unknownSettlement(settlement)
  }
}

function checkNumber(field: string, value: number): void {
  if (Number.isFinite(value)) return
  throw new HoldfastError('HF_STORE_REFUSED', `The ${field} of a settlement cannot be ${value}.`)
}

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
