import { HoldfastError } from '../../errors.ts'
import type { ClientOptions } from './driver.ts'
import { placeOf, type Place } from './place.ts'

export interface RedisStoreOptions {
  /**
   * `redis://user:password@host:6379/0`, or `rediss://…` for TLS; the path is the number of the database. A socket:
   * `redis+unix:///path/to/redis.sock?db=0`. A Redis Cluster: `redis-cluster://` or `rediss-cluster://` and any of its
   * nodes; more of them with `?node=host:6379`, should that one be away.
   */
  readonly url?: string
  /** ioredis options, instead of or in addition to a URL: host, port, password, tls, sentinels … */
  readonly connection?: ClientOptions
  /** What all keys begin with: stores with different prefixes share a Redis and nothing else. @default 'holdfast' */
  readonly prefix?: string
  /** How long one command may take, and a connection to come about, in ms. @default 10_000 */
  readonly commandTimeoutMs?: number
  /** Whether a Redis is taken that may evict keys when it is full: jobs are lost then. @default false */
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

const FIELDS: ReadonlySet<string> = new Set([
  'url',
  'connection',
  'prefix',
  'commandTimeoutMs',
  'allowEviction',
  'onNotice',
])
/** No braces: they would move the hash tag, and with it the keys of a queue to different nodes of a cluster. */
const PREFIX = /^[A-Za-z0-9_.:/-]{1,64}$/

export function readRedisOptions(options: RedisStoreOptions): RedisSettings {
  for (const field of Object.keys(options)) {
    if (!FIELDS.has(field))
      throw refused(`The Redis store has no option ${field}.`, `There are: ${[...FIELDS].join(', ')}.`)
  }
  const { url, connection, prefix = 'holdfast', commandTimeoutMs = 10_000, allowEviction = false } = options
  if (url === undefined && connection === undefined)
    throw bad('url', url, "a text such as 'redis://host:6379'")
  if (connection !== undefined && 'keyPrefix' in connection)
    throw bad('connection.keyPrefix', connection['keyPrefix'], '`prefix` instead')
  if (typeof prefix !== 'string' || !PREFIX.test(prefix))
    throw bad('prefix', prefix, 'up to 64 letters, digits and any of _ . : / -')
  if (!Number.isFinite(commandTimeoutMs) || commandTimeoutMs <= 0)
    throw bad('commandTimeoutMs', commandTimeoutMs, 'a number of milliseconds above 0')
  if (typeof allowEviction !== 'boolean') throw bad('allowEviction', allowEviction, 'true or false')
  return {
    ...placeOf(url, connection ?? {}),
    prefix,
    commandTimeoutMs,
    allowEviction,
    onNotice: options.onNotice ?? ((line) => process.emitWarning(line, 'HoldfastWarning')),
  }
}

function bad(option: string, value: unknown, accepted: string): HoldfastError {
  return refused(
    `The option ${option} of the Redis store cannot be ${JSON.stringify(value)}.`,
    `Use ${accepted}.`,
  )
}

function refused(message: string, hint: string): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', message, { hint })
}
