/** Tells mistakes in code from failures of the world around it: another try cannot help against the former. */

const CLASSES = [TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError] as const

/** Assertions, and modules that do not load. */
const CODES: ReadonlySet<unknown> = new Set([
  'ERR_ASSERTION',
  'ERR_MODULE_NOT_FOUND',
  'MODULE_NOT_FOUND',
  'ERR_PACKAGE_PATH_NOT_EXPORTED',
  'ERR_DLOPEN_FAILED',
])

/** False for `TypeError: fetch failed` and its like, whose cause is the failure of a connection. */
export function isProgrammingError(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false
  if (CODES.has((thrown as { readonly code?: unknown }).code)) return true
  if (!CLASSES.some((one) => thrown instanceof one)) return false
  return !(thrown.cause instanceof Error) || isProgrammingError(thrown.cause)
}
