/** What an error of the server means for us, by its SQLSTATE. */
import { HoldfastError, type ErrorCode } from '../../errors.ts'

/** The server's five-character code; undefined if the error is not the server's (sockets have codes as well: EPIPE). */
export function sqlState(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error && 'severity' in error))
    return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/** Deadlocks and serialization failures: nothing was written, and the next try may well succeed. */
export function isConflict(error: unknown): boolean {
  const state = sqlState(error)
  return state === '40P01' || state === '40001'
}

/**
 * A migration changed what a prepared statement returns. It fails before it does anything, and would always fail on
 * this connection. (0A000 alone is any feature that is not supported.)
 */
export function isStalePlan(error: unknown): boolean {
  return (
    sqlState(error) === '0A000' && error instanceof Error && /cached plan must not change/.test(error.message)
  )
}

/** A lock was not granted within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03'
}

/**
 * Whether an upgrade may have replaced functions, types or views in the middle of a call, which then finds no function
 * with these parameters, or two versions of a type: class 42 (except missing rights and names of prepared statements),
 * or a look at what was just dropped. Only for statements of ours: nothing was written, and the next try meets the new
 * set alone.
 */
export function isReplaced(error: unknown): boolean {
  const state = sqlState(error)
  if (state === 'XX000')
    return error instanceof Error && /cache lookup failed|could not open relation/.test(error.message)
  return state !== undefined && /^42(?!501|P05)/.test(state)
}

/** The prepared statement is not there, or is there already: a pooler between us and the server swaps connections. */
export function isLostStatement(error: unknown): boolean {
  const state = sqlState(error)
  return state === '26000' || state === '42P05'
}

/**
 * Whether the connection can no longer be used: every error that is not the server's, what the server says when it
 * disconnects (57P… shutdown, crash, starting, idle; 25P03 and 25P04 timeouts; 08… protocol), and 25006: a server that
 * has become read-only is a demoted primary, so the next connection should look for the new one.
 */
export function endsConnection(error: unknown): boolean {
  const state = sqlState(error)
  return state === undefined || /^(57P|08|25P03|25P04|25006)/.test(state) || isStalePlan(error)
}

interface Meaning {
  readonly states: RegExp
  readonly code: ErrorCode
  readonly what: string
  readonly hint?: string
}

/** Permanent errors, and full disks. Every other error counts as an outage and is tried again. */
const MEANINGS: readonly Meaning[] = [
  // Authentication, roles that may not log in, and missing rights.
  { states: /^(28...|42501)$/, code: 'HF_STORE_DENIED', what: 'The database denied access' },
  { states: /^3D000$/, code: 'HF_STORE_MISSING', what: 'The database is not there' },
  {
    states: /^(3F000|42P01|42883)$/,
    code: 'HF_STORE_MISSING',
    what: 'Tables or functions of the store are missing',
    hint: 'The schema was dropped or renamed: restore it, or restart with migrations to create it again.',
  },
  // P0001: a check in a function of the store. 42: a statement that does not match the schema, after the executor has
  // repeated it in case of an upgrade. Not 42P05, a prepared statement that is there already.
  {
    states: /^(P0001|42(?!P05)...)$/,
    code: 'HF_STORE_CONTRACT',
    what: 'The schema or its data is inconsistent',
    hint: 'Something other than Holdfast changed the schema or its rows: restore them from a backup, or use another schema.',
  },
  // 22: a value that its type cannot hold. 54: one that is too large or too complex.
  { states: /^(22|54)...$/, code: 'HF_STORE_REFUSED', what: 'The database refused a value' },
  {
    states: /^53100$/,
    code: 'HF_STORE_FULL',
    what: 'The disk of the database is full',
    hint: "Free space on the server's disk, or keep finished jobs for less long; workers lose nothing and try again.",
  },
  {
    states: /^53200$/,
    code: 'HF_STORE_FULL',
    what: 'The database has no memory left',
    hint: 'Give the server more memory, or lower its number of connections; workers lose nothing and try again.',
  },
]

/**
 * Convert an error of the server to a HoldfastError if it is permanent or says that the server is full. Other errors
 * come out as they are: the caller takes them for an outage and tries again.
 */
export function explain(error: unknown): unknown {
  const state = sqlState(error) ?? (isMissingPassword(error) ? '28P01' : undefined)
  const meaning = MEANINGS.find(({ states }) => state !== undefined && states.test(state))
  if (meaning === undefined || !(error instanceof Error)) return error
  const { code, what, hint } = meaning
  return new HoldfastError(code, `${what}: ${error.message} (SQLSTATE ${state}).`, {
    cause: error,
    ...(hint === undefined ? {} : { hint }),
  })
}

/** The driver throws this itself if the server asks for a password and none was given. */
function isMissingPassword(error: unknown): boolean {
  return error instanceof Error && /^SASL: .*password must be/.test(error.message)
}
