/** Drizzle's transaction on PostgreSQL, with any driver. */
import { field, has, notInTransaction, type Recognise } from './shape.ts'

export const drizzle: Recognise = (tx) => {
  if (!has(tx, 'execute', 'insert') || typeof field(tx, 'dialect') !== 'object') return undefined
  if (!has(tx, 'rollback')) {
    throw notInTransaction(
      'a Drizzle database outside of a transaction',
      'Use db.transaction(async (tx) => …), and pass the tx that it gives.',
    )
  }
  return async (text, values) => tx.execute(sqlWrapper(text, values))
}

/**
 * `execute` takes a text without values, or a SQLWrapper, which it asks for the SQL and its query. Answering that is
 * enough; the driver below it (`tx.session.client`) differs from package to package.
 */
function sqlWrapper(sql: string, params: (string | null)[]): object {
  const query = { sql, params }
  return { getSQL: () => ({ toQuery: () => query }) }
}
