/** TypeORM's `EntityManager` of a transaction, or a `QueryRunner` that has started one. */
import { field, has, notInTransaction, type Recognise } from './shape.ts'

export const typeorm: Recognise = (tx) => {
  if (!has(tx, 'query')) return undefined
  const isManager = has(tx, 'getRepository')
  if (!isManager && !has(tx, 'startTransaction', 'commitTransaction')) return undefined
  // A DataSource has repositories, but no runner of its own.
  const runner = isManager ? field(tx, 'queryRunner') : tx
  const active = typeof runner === 'object' && runner !== null && field(runner, 'isTransactionActive')
  if (active !== true) {
    throw notInTransaction(
      'of TypeORM, but in no transaction',
      'Use dataSource.transaction(async (manager) => …), and pass the manager that it gives.',
    )
  }
  return async (text, values) => tx.query(text, values)
}
