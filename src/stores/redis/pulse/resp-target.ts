/**
 * Where the heartbeat thread connects to, read from what ioredis would be given. Null for options that only ioredis
 * knows (Sentinel, profiles of TLS …): the thread loads it then, and takes more memory.
 */
import type { IpcNetConnectOpts, TcpNetConnectOpts } from 'node:net'
import type { ClientOptions } from '../driver.ts'
import { FIXED } from '../line.ts'

export interface RespTarget {
  /** For `net.connect` or `tls.connect`. */
  readonly socket: TcpNetConnectOpts | IpcNetConnectOpts
  /** Further options for `tls.connect`; null for a connection without TLS. */
  readonly tls: object | null
  /** Arguments of AUTH; null if there is no password. */
  readonly auth: readonly string[] | null
  readonly noDelay: boolean
  readonly connectionName: string | null
}

/** Options of ioredis that change nothing about one connection that sends single commands and never reconnects by itself. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  ...Object.keys(FIXED),
  'autoPipeliningIgnoredCommands',
  'autoResendUnfulfilledCommands',
  'clientInfoTag',
  'enableAutoPipelining',
  'maxLoadingRetryTime',
  'maxRetriesPerRequest',
  'reconnectOnError',
  'scripts',
  'showFriendlyErrorStack',
  'stringNumbers',
])

interface GivenOptions {
  host?: string
  port?: number
  family?: number
  path?: string
  username?: string
  password?: string
  tls?: object
  noDelay?: boolean
  connectionName?: string
}

export function respTarget(url: string | null, connection: ClientOptions): RespTarget | null {
  const given = read(url === null ? connection : { ...connection, ...partsOf(url, connection) })
  if (given === null) return null
  const { host = 'localhost', port = 6379, family, path, username, password, tls, noDelay } = given
  const tcp = family === undefined ? { host, port } : { host, port, family }
  const isNamed = username !== undefined && username !== ''
  const hasPassword = password !== undefined && password !== ''
  return {
    socket: path === undefined || path === '' ? tcp : { path },
    tls: tls ?? null,
    auth: isNamed ? [username, password ?? ''] : hasPassword ? [password] : null,
    noDelay: noDelay ?? true,
    connectionName: given.connectionName ?? null,
  }
}

/** As ioredis reads a URL: it wins over the options, except that it only asks for TLS where they say nothing of it. */
function partsOf(url: string, { tls }: ClientOptions): ClientOptions {
  const { protocol, username, password, hostname, port, searchParams } = new URL(url)
  const hasUser = username !== '' || password !== ''
  return {
    ...Object.fromEntries(searchParams),
    ...(searchParams.has('family') ? { family: Number(searchParams.get('family')) } : {}),
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    ...(port === '' ? {} : { port }),
    ...(hasUser ? { username: decodeURIComponent(username), password: decodeURIComponent(password) } : {}),
    ...(protocol === 'rediss:' && tls === undefined ? { tls: {} } : {}),
  }
}

function read(options: ClientOptions): GivenOptions | null {
  const given: GivenOptions = {}
  for (const [name, value] of Object.entries(options)) {
    const isUnset = value === undefined || value === null || WITHOUT_EFFECT.has(name)
    if (!isUnset && !take(given, name, value)) return null
  }
  return given
}

/** False for what we cannot read. */
function take(given: GivenOptions, name: string, value: unknown): boolean {
  switch (name) {
    case 'host':
    case 'path':
    case 'username':
    case 'password':
    case 'connectionName':
      if (typeof value !== 'string') return false
      given[name] = value
      return true
    case 'port':
    case 'family': {
      const number = typeof value === 'string' && value !== '' ? Number(value) : value
      if (typeof number !== 'number' || !Number.isInteger(number)) return false
      given[name] = number
      return true
    }
    case 'noDelay':
      if (typeof value !== 'boolean') return false
      given.noDelay = value
      return true
    case 'tls':
      return takeTls(given, value)
    default:
      return false
  }
}

function takeTls(given: GivenOptions, value: unknown): boolean {
  if (value === false) return true
  if (value !== true && typeof value !== 'object') return false
  const tls = value === true || value === null ? {} : value
  if ('profile' in tls) return false
  given.tls = tls
  return true
}
