/** The only value of a result with one row and one column, in the form that each library returns. */
import { brokenAnswer } from '../../broken-answer.ts'

/**
 * The column by its position, because libraries may rename columns. JSON arrives parsed or as text, depending on the
 * caller's settings.
 */
export function onlyJson(result: unknown): unknown {
  const [row] = rowsOf(result)
  const [value] = typeof row === 'object' && row !== null ? (Object.values(row) as unknown[]) : []
  if (value === undefined) throw brokenAnswer('postgres', 'the transaction returned no row', HINT)
  return typeof value === 'string' ? JSON.parse(value) : value
}

const HINT = 'Roll it back. What the library is told to do with results must leave rows with their values.'

/** A list, or an object that has one. */
function rowsOf(result: unknown): readonly unknown[] {
  if (Array.isArray(result)) return result
  if (typeof result !== 'object' || result === null || !('rows' in result)) return []
  return Array.isArray(result.rows) ? result.rows : []
}
