/**
 * Where the store is: server, socket or cluster, and which database. We read the URL ourselves, strictly: ioredis takes
 * anything after the host for a database, asks the server for it, and continues in database 0 if the server refuses.
 */
import { HoldfastError } from '../../errors.ts'
import { readClusterUrl, type NodeAddress } from './cluster/cluster-url.ts'
import type { ClientOptions } from './driver.ts'

export interface Place {
  /** Without a database; null if `connection` says it all. */
  readonly url: string | null
  /**
   * The caller's own object where possible: a getter in it is read at each new connection, for example after a
   * failover.
   */
  readonly connection: ClientOptions
  readonly db: number
  /** Nodes of a cluster to begin with; null for a Redis that is not one. */
  readonly cluster: readonly NodeAddress[] | null
}

const SINGLE = /^rediss?:$/
const CLUSTER = /^rediss?-cluster:$/
const SOCKET = 'redis+unix:'
const DATABASE = /^(0|[1-9]\d{0,8})$/
const FORMS = "Use the form 'redis://user:password@host:6379/0', or 'redis+unix:///path/to/redis.sock?db=0'."

export function placeOf(url: string | undefined, connection: ClientOptions): Place {
  const { db: ownDb } = connection
  if (url === undefined) return { url: null, connection, db: databaseOf([ownDb]), cluster: null }
  // Messages do not contain the text itself, because it may contain a password.
  if (typeof url !== 'string' || !URL.canParse(url)) throw unreadable(FORMS)
  const parsed = new URL(url)
  refuseBadEscapes(parsed)
  if (CLUSTER.test(parsed.protocol)) return clusterPlace(url, parsed, connection, ownDb)
  if (parsed.protocol === SOCKET) return socketPlace(parsed, connection, ownDb)
  if (!SINGLE.test(parsed.protocol)) throw unreadable(FORMS)
  if (parsed.hostname === '')
    throw unreadable(
      "For a socket, use 'redis+unix:///path/to/redis.sock?db=0'; for a server, name its host.",
    )
  const path = parsed.pathname.replace(/^\//, '')
  const db = databaseOf([path === '' ? undefined : path, parsed.searchParams.get('db') ?? undefined, ownDb])
  parsed.pathname = ''
  parsed.searchParams.delete('db')
  return { url: parsed.href, connection, db, cluster: null }
}

function socketPlace(
  { hostname, pathname, searchParams }: URL,
  connection: ClientOptions,
  db: unknown,
): Place {
  if (hostname !== '' || pathname.length < 2)
    throw unreadable("Use three slashes: 'redis+unix:///path/to/redis.sock?db=0'.")
  const others = [...searchParams.keys()].filter((name) => name !== 'db')
  if (others.length > 0)
    throw unreadable(
      'Behind the path of a socket there can be ?db= only; pass other options as `connection`.',
    )
  return {
    url: null,
    connection: { ...connection, path: decodeURIComponent(pathname) },
    db: databaseOf([searchParams.get('db') ?? undefined, db]),
    cluster: null,
  }
}

function clusterPlace(text: string, parsed: URL, connection: ClientOptions, db: unknown): Place {
  const { seeds, options } = readClusterUrl(text)
  if (seeds === null)
    throw refused(
      'The url of the Redis store names a node that cannot be read.',
      "Use the form 'redis-cluster://user:password@host:6379?node=host:6379'.",
    )
  const path = parsed.pathname.replace(/^\//, '')
  const asked = databaseOf([path === '' ? undefined : path, parsed.searchParams.get('db') ?? undefined, db])
  if (asked !== 0)
    throw refused(
      `The url of the Redis store asks for database ${asked}, and a Redis Cluster has database 0 only.`,
      'Leave the database out; stores with a `prefix` of their own share a cluster and nothing else.',
    )
  return { url: null, connection: { ...options, ...connection }, db: 0, cluster: seeds }
}

/** The database number from the URL or the options; 0 if none is given. */
function databaseOf(said: readonly unknown[]): number {
  const all = said.filter((one) => one !== undefined)
  const bad = all.find((one) => !isDatabase(one))
  if (bad !== undefined)
    throw refused(
      `The Redis store cannot use ${JSON.stringify(bad)} as a database.`,
      "Name it by its number: 'redis://host:6379/2'. A path to a socket has the form 'redis+unix:///path/to/redis.sock?db=2'.",
    )
  const [first = 0, ...others] = all.map(Number)
  if (others.some((other) => other !== first))
    throw refused(
      `The Redis store was given database ${first} and database ${others.find((other) => other !== first)}.`,
      'Name the database once: in the url, or in `connection`.',
    )
  return first
}

function isDatabase(said: unknown): boolean {
  return (typeof said === 'string' || typeof said === 'number') && DATABASE.test(String(said))
}

/** The driver would find out at each connection, and the store would look unreachable. */
function refuseBadEscapes({ username, password, pathname }: URL): void {
  try {
    for (const part of [username, password, pathname]) decodeURIComponent(part)
  } catch {
    throw unreadable('Write % as %25, and other special characters of the password as their escapes.')
  }
}

function unreadable(hint: string): HoldfastError {
  return refused('The url of the Redis store cannot be read.', hint)
}

function refused(message: string, hint: string): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', message, { hint })
}
