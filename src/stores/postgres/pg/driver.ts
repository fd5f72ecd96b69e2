/**
 * What we use of `pg`, by structure: its types are not needed to use ours, and a user's pool may be any object that
 * behaves like one. Also opens and ends connections, each in bounded time.
 */
import { HoldfastError } from '../../../errors.ts'
import type { Clock } from '../../../std/clock.ts'
import { withDeadline } from '../../../std/deadline.ts'
import { parserOf } from '../results.ts'

export interface PgQuery {
  readonly text: string
  readonly name?: string
  readonly values?: unknown[]
  readonly types?: PgTypes
}

interface PgTypes {
  getTypeParser(oid: number): (text: string) => unknown
}

export interface PgResult {
  readonly rows: unknown[]
  /** The command's tag without its counts: COMMIT, ROLLBACK … */
  readonly command: string
}

export interface PgClient {
  query(query: PgQuery): Promise<PgResult>
  on(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  /** 'I' if no transaction is open; since about version 8.20. */
  getTransactionStatus?(): string | null
}

/** A connection of our own. */
export interface OwnClient extends PgClient {
  readonly host: string
  readonly port: number
  readonly processID: number | null
  readonly secretKey: number | null
  /** Undocumented, but the only way to end a connection that does not answer. */
  readonly connection: { readonly stream: { destroy(): void } }
  connect(): Promise<unknown>
  end(): Promise<void>
  ref(): void
  unref(): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  on(event: 'notification', listener: (notice: PgNotice) => void): unknown
}

export interface PgNotice {
  readonly channel: string
  readonly payload?: string | undefined
}

export interface PgConfig {
  readonly connectionString: string
  readonly application_name: string
  readonly keepAlive: boolean
  readonly keepAliveInitialDelayMillis: number
}

export interface PgModule {
  readonly Client: new (config: PgConfig) => OwnClient
}

export async function loadPg(): Promise<PgModule> {
  try {
    return (await import('pg')) as unknown as PgModule
  } catch (cause) {
    throw new HoldfastError(
      'HF_BAD_STORE',
      'The PostgreSQL store needs the package pg, which does not load.',
      {
        hint: 'Install it: npm install pg.',
        cause,
      },
    )
  }
}

/** Per query, so that a user's `pg.types.setTypeParser` does not affect us, nor ours the user. */
export const resultTypes: PgTypes = { getTypeParser: parserOf }

const CONNECT_MS = 5_000
const GOODBYE_MS = 1_000
/** Node probes each second from then on, ten times: a peer that vanished is noticed after 20 s without traffic. */
const KEEP_ALIVE_MS = 10_000

/** Opens connections, and ends them. */
export class Connector {
  readonly #load: () => Promise<PgModule>
  readonly #config: PgConfig
  readonly #clock: Clock

  constructor(
    load: () => Promise<PgModule>,
    to: { readonly connectionString: string; readonly applicationName: string },
    clock: Clock,
  ) {
    this.#load = load
    this.#clock = clock
    this.#config = {
      connectionString: to.connectionString,
      application_name: to.applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    }
  }

  async connect(signal?: AbortSignal): Promise<OwnClient> {
    const { Client } = await this.#load()
    const client = this.#create(Client)
    // For the connection's whole life: an `error` without a listener ends the process. Users of the connection listen
    // as well.
    client.on('error', () => undefined)
    const abort = (): void => cut(client)
    signal?.addEventListener('abort', abort)
    try {
      signal?.throwIfAborted()
      await withDeadline(this.#clock, CONNECT_MS, client.connect(), () =>
        unreachable(`The database did not accept a connection within ${CONNECT_MS / 1000} s.`),
      )
      return client
    } catch (error) {
      cut(client)
      throw error
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  /** Closes it in the protocol's way first, then by force. */
  async end(client: OwnClient): Promise<void> {
    const late = (): Error => unreachable('The database did not close the connection in time.')
    await withDeadline(this.#clock, GOODBYE_MS, client.end(), late).catch(() => undefined)
    cut(client)
  }

  #create(Client: PgModule['Client']): OwnClient {
    try {
      return new Client(this.#config)
    } catch (cause) {
      // Without the string itself: it has the password.
      throw new HoldfastError(
        'HF_BAD_OPTION',
        'The connection string of the PostgreSQL store cannot be read.',
        {
          hint: "Use the form 'postgres://user:password@host:5432/database'; escape special characters in the password.",
          cause,
        },
      )
    }
  }
}

/** At once, regardless of pending queries: `client.end()` waits forever if the server does not answer. */
export function cut(client: OwnClient): void {
  client.connection.stream.destroy()
}

/** Known to `Connection` as transient. */
export function unreachable(
  message: string,
  options: { hint?: string; cause?: unknown } = {},
): HoldfastError {
  return new HoldfastError('HF_STORE_UNREACHABLE', message, options)
}
