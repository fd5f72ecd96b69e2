/** The `sql` inside `sql.begin(async (sql) => …)` of postgres.js, or a reserved one. */
import { has, notInTransaction, type Recognise } from './shape.ts'

export const postgresJs: Recognise = (tx) => {
  if (typeof tx !== 'function' || !has(tx, 'unsafe', 'notify')) return undefined
  // A reserved connection has no `begin` function; whether a transaction was begun by a statement cannot be seen.
  if (has(tx, 'begin')) {
    throw notInTransaction(
      'the sql of postgres.js outside of a transaction',
      'Use sql.begin(async (tx) => …), and pass the tx that it gives.',
    )
  }
  return async (text, values) => tx.unsafe(text, values)
}
