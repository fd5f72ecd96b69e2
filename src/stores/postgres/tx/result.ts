/** The one value of a result of one row and one column, whatever a library makes of results. */
import { HoldfastError } from '../../../errors.ts'

/** The column by its place: libraries rename columns at will. JSON comes parsed or as text, by what the caller has set. */
export function onlyJson(result: unknown): unknown {
  const [row] = rowsOf(result)
  const [value] = typeof row === 'object' && row !== null ? (Object.values(row) as unknown[]) : []
  if (value === undefined) {
    throw new HoldfastError('HF_STORE_CONTRACT', 'The transaction answered without the row asked for.', {
      hint: 'Roll it back. The result settings of the library must keep rows with their values.',
    })
  }
  return typeof value === 'string' ? JSON.parse(value) : value
}

/** A list, or an object that has one. */
function rowsOf(result: unknown): readonly unknown[] {
  if (Array.isArray(result)) return result
  if (typeof result !== 'object' || result === null || !('rows' in result)) return []
  return Array.isArray(result.rows) ? result.rows : []
}
