/** A client of `pg` with an open transaction, or anything else whose `query` takes text and values. */
import { field, has, notInTransaction, type Recognise } from './shape.ts'

export const pg: Recognise = (tx) => {
  if (!has(tx, 'query')) return undefined
  if (typeof field(tx, 'totalCount') === 'number' && has(tx, 'connect')) {
    throw notInTransaction(
      'a pool, which uses any of its connections',
      'Take one client from it (await pool.connect()), begin on that, and pass it.',
    )
  }
  // Since about pg 8.20.
  if (has(tx, 'getTransactionStatus') && tx.getTransactionStatus() === 'I') {
    throw notInTransaction(
      'a pg client on which no transaction is open',
      "Await client.query('begin') first, and pass the client before its commit.",
    )
  }
  return async (text, values) => tx.query(text, values)
}
