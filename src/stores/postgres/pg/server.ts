/** Checks whether a server can be used, when the store is opened. */
import { HoldfastError } from '../../../errors.ts'
import type { Statement } from './statement.ts'
import { unreachable } from './driver.ts'

export interface ServerFacts {
  /** As in `server_version_num`: 180004. */
  readonly version: number
}

export interface ServerState {
  readonly version: number
  readonly recovering: boolean
  readonly readOnly: boolean
  readonly encoding: string
  /** Isolation level of a statement outside a transaction. */
  readonly isolation: string
}

export const askServer: Statement = {
  name: 'server',
  text: `select current_setting('server_version_num')::int as version,
                getdatabaseencoding() as encoding,
                pg_is_in_recovery() as recovering,
                current_setting('transaction_read_only') = 'on' as "readOnly",
                current_setting('transaction_isolation') as isolation`,
}

const OLDEST = 130_000

export function checkServer(state: ServerState | undefined): ServerFacts {
  if (state === undefined) throw unreachable('The database did not report its version.')
  const { version } = state
  if (version < OLDEST) {
    const major = version >= 100_000 ? Math.floor(version / 10_000) : version / 10_000
    throw new HoldfastError(
      'HF_BAD_STORE',
      `The server is PostgreSQL ${major}; the store needs 13 or newer.`,
      {
        hint: 'Upgrade the server, or use another one.',
      },
    )
  }
  if (state.encoding !== 'UTF8') {
    throw new HoldfastError(
      'HF_BAD_STORE',
      `The encoding of the database is ${state.encoding}; the store needs UTF8.`,
      { hint: "Create a database with it: create database … encoding 'UTF8' template template0." },
    )
  }
  // Both may pass once a failover is complete or the right server is found, so they are worth another try.
  if (state.recovering) {
    throw unreachable('The server is a standby: it is in recovery and takes no writes.', {
      hint: 'Connect to the primary, or wait until this server is promoted.',
    })
  }
  if (state.readOnly) {
    throw unreachable('The database is read-only (default_transaction_read_only is on).', {
      hint: 'Connect to a primary, or turn default_transaction_read_only off for this database and user.',
    })
  }
  return { version }
}
