/** The error for an answer that a store's server, script or function cannot have given. */
import { HoldfastError } from '../errors.ts'

const HINT =
  "Something other than Holdfast changed the store's data, or this is a bug in Holdfast: report it with this message."

/**
 * Permanent: a plain Error counts as an outage, and the call would be repeated until its deadline. `what` is a clause:
 * 'a heartbeat returned no row'.
 */
export function brokenAnswer(kind: string, what: string, hint: string = HINT): HoldfastError {
  return new HoldfastError('HF_STORE_CONTRACT', `The ${kind} store gave a broken answer: ${what}.`, { hint })
}

/** JSON as the store wrote it. */
export function parseAnswer<T>(kind: string, text: string): T {
  try {
    return JSON.parse(text) as T
  } catch {
    throw brokenAnswer(kind, 'a stored value is not the JSON that was written')
  }
}
