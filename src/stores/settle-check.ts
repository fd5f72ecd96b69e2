/** Refuses settlements that no store can write, before anything of the call is written. */
import { HoldfastError } from '../errors.ts'
import type { Settlement } from '../job/settlement.ts'
import type { SettleRequest } from './store.ts'

/** For the `default` of a switch over all kinds. */
export function unknownSettlement(settlement: never): never {
  const { type } = settlement as { readonly type: unknown }
  throw new HoldfastError('HF_STORE_CONTRACT', `Unknown kind of settlement: ${JSON.stringify(type)}.`, {
    hint: 'Settle jobs as completed, retry, dead, snooze, release, cancelled or confirm.',
  })
}

/** For stores whose server does not check these values. */
export function checkSettles(settles: readonly SettleRequest[]): void {
  for (const { settlement, runMs } of settles) {
    const delayMs = delayOf(settlement)
    if (!Number.isFinite(runMs)) throw notANumber('runMs', runMs)
    if (!Number.isFinite(delayMs)) throw notANumber('delayMs', delayMs)
  }
}

function delayOf(settlement: Settlement): number {
  switch (settlement.type) {
    case 'retry':
    case 'snooze':
      return settlement.delayMs
    case 'completed':
    case 'dead':
    case 'release':
    case 'cancelled':
    case 'confirm':
      return 0
    default:
      return unknownSettlement(settlement)
  }
}

function notANumber(field: string, value: number): HoldfastError {
  return new HoldfastError('HF_STORE_REFUSED', `The ${field} of a settlement cannot be ${value}.`)
}
