/** The facet of the contract for transactions of the callers' own: the same statements, through their handle. */
import type { Transactions } from '../../store.ts'
import { packFlush, readAnswers, type Answers } from '../enqueue.ts'
import type { Statements } from '../statements.ts'
import { sendThrough } from './handle.ts'
import { onlyJson } from './result.ts'

export function sqlTransactions(statements: Statements): Pick<Transactions, 'enqueue' | 'notes'> {
  return {
    async enqueue(tx, flush) {
      const send = sendThrough(tx)
      const { statement, values } = packFlush(statements, flush)
      // Without the statement's name: what is prepared on a connection of theirs is theirs.
      const result = await send(statement.text, values)
      return readAnswers(flush, onlyJson(result) as Answers | null)
    },
    async notes(tx, kind) {
      const result = await sendThrough(tx)(statements.notesAsJson.text, [kind])
      return (onlyJson(result) as [id: string, text: string][]).map(([id, text]) => ({ id, text }))
    },
  }
}
