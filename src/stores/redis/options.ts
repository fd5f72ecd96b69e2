import { HoldfastError } from '../../errors.ts'
import { warnOfNotice } from '../on-notice.ts'
import { boolean, fn, having, positive, readersFor, readOptions, refused, secret } from '../../job/options.ts'
import type { ClientOptions } from './driver.ts'
import { placeOf, type Place } from './place.ts'

export interface RedisStoreOptions {
  /**
   * `redis://user:password@host:6379/0`, or `rediss://…` for TLS; the path is the number of the database. A socket:
   * `redis+unix:///path/to/redis.sock?db=0`. A Redis Cluster: `redis-cluster://` or `rediss-cluster://` and any of its
   * nodes; name more of them with `?node=host:6379` in case that one is down.
   */
  readonly url?: string
  /** ioredis options, instead of or in addition to a URL: host, port, password, tls, sentinels … */
  readonly connection?: ClientOptions
  /** Prefix of all keys: stores with different prefixes share a Redis and nothing else. @default 'holdfast' */
  readonly prefix?: string
  /** Timeout of one command, including the wait for a connection, in ms. @default 10_000 */
  readonly commandTimeoutMs?: number
  /** Whether to accept a Redis that may evict keys when it is full, which loses jobs. @default false */
  readonly allowEviction?: boolean
  /** Called with one line about anything that does not work as well as it could. @default a process warning */
  readonly onNotice?: (line: string) => void
}

export interface RedisSettings extends Place {
  readonly prefix: string
  readonly commandTimeoutMs: number
  readonly allowEviction: boolean
  readonly onNotice: (line: string) => void
}

/** No braces: they would move the hash tag, and with it the keys of a queue to different nodes of a cluster. */
const PREFIX = /^[A-Za-z0-9_.:/-]{1,64}$/

const FIELDS = readersFor<RedisStoreOptions>()({
  url: secret("a text such as 'redis://host:6379'"),
  connection: readConnection,
  prefix: readPrefix,
  commandTimeoutMs: positive,
  allowEviction: boolean,
  onNotice: fn<(line: string) => void>(),
})

export function readRedisOptions(options: RedisStoreOptions): RedisSettings {
  const { url, connection, onNotice = warnOfNotice, ...read } = readOptions(options, 'redisStore()', FIELDS)
  if (url === undefined && connection === undefined)
    throw new HoldfastError('HF_BAD_OPTION', 'redisStore() was given neither a `url` nor a `connection`.', {
      hint: "Pass redisStore({ url: 'redis://host:6379' }).",
    })
  const { prefix = 'holdfast', commandTimeoutMs = 10_000, allowEviction = false } = read
  return { ...placeOf(url, connection ?? {}), prefix, commandTimeoutMs, allowEviction, onNotice }
}

function readPrefix(value: unknown, path: string): string {
  if (typeof value === 'string' && PREFIX.test(value)) return value
  throw refused(path, value, 'up to 64 letters, digits and any of _ . : / -')
}

function readConnection(value: unknown, path: string): ClientOptions {
  const connection = having<ClientOptions>()(value, path)
  if (!('keyPrefix' in connection)) return connection
  throw refused(
    `${path}.keyPrefix`,
    connection['keyPrefix'],
    'left out',
    'Use `prefix` of the store instead.',
  )
}
