/** Knex's transaction. Its `raw` writes parameters as question marks. */
import { field, has, notInTransaction, type Recognise } from './shape.ts'

export const knex: Recognise = (tx) => {
  if (typeof tx !== 'function' || !has(tx, 'raw', 'transaction')) return undefined
  if (field(tx, 'isTransaction') !== true) {
    throw notInTransaction(
      'a Knex instance outside of a transaction',
      'Use knex.transaction(async (trx) => …), and pass the trx that it gives.',
    )
  }
  return async (text, values) => {
    const bindings: (string | null)[] = []
    // Our SQL contains no question mark itself; a test checks that.
    const raw = text.replaceAll(/\$(\d+)/g, (_, number: string) => {
      bindings.push(values[Number(number) - 1] ?? null)
      return '?'
    })
    return tx.raw(raw, bindings)
  }
}
