/** Kysely's `Transaction`, controlled ones included. */
import { field, has, notInTransaction, type Recognise } from './shape.ts'

export const kysely: Recognise = (tx) => {
  if (!has(tx, 'executeQuery', 'getExecutor')) return undefined
  if (field(tx, 'isTransaction') !== true) {
    throw notInTransaction(
      'a Kysely instance outside of a transaction',
      'Use db.transaction().execute(async (tx) => …), and pass the tx that it gives.',
    )
  }
  return async (text, values) => tx.executeQuery(compiled(text, values))
}

/** The object that `CompiledQuery.raw` makes. Plugins store facts about a query under its queryId, an object. */
function compiled(sql: string, parameters: readonly (string | null)[]): object {
  return {
    sql,
    parameters,
    query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
    queryId: { queryId: 'holdfast' },
  }
}
