/** Steps in the callers' own transactions: the same statements, through the caller's handle. */
import type { EnqueueAnswer, Flush, Note } from '../../store.ts'
import { packFlush, readAnswers, type Answers } from '../enqueue.ts'
import type { Statements } from '../statements.ts'
import { sendThrough } from './handle.ts'
import { onlyJson } from './result.ts'

export async function enqueueIn(
  tx: unknown,
  statements: Statements,
  flush: Flush,
): Promise<readonly EnqueueAnswer[]> {
  const send = sendThrough(tx)
  const { statement, values } = packFlush(statements, flush)
  // Without the statement's name: prepared statements on the caller's connection are the caller's business.
  const result = await send(statement.text, values)
  return readAnswers(flush, onlyJson(result) as Answers | null)
}

export async function listNotesIn(
  tx: unknown,
  statements: Statements,
  kind: string,
): Promise<readonly Note[]> {
  const result = await sendThrough(tx)(statements.notesAsJson.text, [kind])
  return (onlyJson(result) as [id: string, text: string][]).map(([id, text]) => ({ id, text }))
}
