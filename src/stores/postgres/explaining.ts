/**
 * An executor whose errors say what they mean: permanent ones come out as HoldfastErrors, under codes of their own. What
 * the code of a handler's transaction raises is its own affair and comes out as it is.
 */
import type { Executor, Queryable, Transaction } from './executor.ts'
import { explain } from './server-errors.ts'

export function explaining(executor: Executor): Executor {
  return {
    ...explainingQueries(executor),
    open: () => executor.open().catch(rethrow),
    async transaction(work, options) {
      let thrownByWork: unknown
      try {
        return await executor.transaction(async (tx): Promise<Awaited<ReturnType<typeof work>>> => {
          try {
            return await work(explainingTransaction(tx))
          } catch (error) {
            thrownByWork = error
            throw error
          }
        }, options)
      } catch (error) {
        throw error === thrownByWork ? error : explain(error)
      }
    },
    listen: (...call) => executor.listen(...call).catch(rethrow),
    close: () => executor.close(),
  }
}

function explainingTransaction(tx: Transaction): Transaction {
  return { ...explainingQueries(tx), handle: tx.handle }
}

function explainingQueries(db: Queryable): Queryable {
  return {
    query: (statement, values) => db.query<never>(statement, values).catch(rethrow),
    script: (sql) => db.script(sql).catch(rethrow),
  }
}

function rethrow(error: unknown): never {
  throw explain(error)
}
