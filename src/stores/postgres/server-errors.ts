/** What an error of the server means for us, by its SQLSTATE. */

/** The five characters of the server; undefined where the error is not the server's (sockets have codes, too: EPIPE). */
export function sqlState(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error && 'severity' in error))
    return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/** Deadlocks and serialization failures: nothing was written, and the next try may well get through. */
export function isConflict(error: unknown): boolean {
  const state = sqlState(error)
  return state === '40P01' || state === '40001'
}

/**
 * A migration changed what a prepared statement returns. It fails before it does anything, and would fail for ever on
 * this connection. (0A000 alone is any feature that is not supported.)
 */
export function isStalePlan(error: unknown): boolean {
  return (
    sqlState(error) === '0A000' && error instanceof Error && /cached plan must not change/.test(error.message)
  )
}

/** The prepared statement is not there, or is there already: somebody between us and the server swaps connections. */
export function isLostStatement(error: unknown): boolean {
  const state = sqlState(error)
  return state === '26000' || state === '42P05'
}

/**
 * Whether the connection is of no further use: every error that is not the server's, what the server says while it hangs up
 * (57P… shutdown, crash, starting, idle; 25P03 and 25P04 timeouts; 08… protocol), and 25006: a server that has
 * become read-only is a demoted primary, so the next connection should look for the new one.
 */
export function endsConnection(error: unknown): boolean {
  const state = sqlState(error)
  return state === undefined || /^(57P|08|25P03|25P04|25006)/.test(state) || isStalePlan(error)
}
