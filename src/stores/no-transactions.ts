/** For stores without transactions: a flush must not be written outside its caller's transaction. */
import { HoldfastError } from '../errors.ts'
import type { Flush } from './flush.ts'

export function refuseTransaction(kind: string, { tx }: Pick<Flush, 'tx'>): void {
  if (tx !== undefined) throw noTransactions(kind)
}

export function noTransactions(kind: string): HoldfastError {
  return new HoldfastError('HF_NO_TRANSACTIONS', `The ${kind} store has no transactions to enqueue in.`)
}
