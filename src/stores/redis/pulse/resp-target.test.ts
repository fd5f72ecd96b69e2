import { Redis, type RedisOptions } from 'ioredis'
import { describe, expect, test } from 'vitest'
import type { ClientOptions } from '../driver.ts'
import { FIXED } from '../line.ts'
import { respTarget } from './resp-target.ts'

const URLS_AND_OPTIONS: [string | null, RedisOptions][] = [
  ['redis://localhost:6379', {}],
  ['redis://example.com', {}],
  ['redis://:secret@[::1]:7000', {}],
  ['redis://me:p%40ss@10.0.0.1:7000?family=6', {}],
  ['redis://me@10.0.0.1', { username: 'you', password: 'secret' }],
  ['redis://10.0.0.1', { port: 7000, password: 'secret', maxRetriesPerRequest: null }],
  ['rediss://example.com:7000', {}],
  ['rediss://example.com', { tls: { servername: 'other', ca: ['(a certificate)'] } }],
  ['redis://example.com', { tls: { rejectUnauthorized: false } }],
  [null, {}],
  [null, { host: 'example.com', port: 7000, family: 4, noDelay: false, enableAutoPipelining: true }],
  [null, { path: '/run/redis.sock', username: 'me', password: 'secret' }],
  [null, { password: '', username: 'me' }],
]

const Client = Redis as new (...args: unknown[]) => Redis

describe('what leads the heartbeat thread to Redis', () => {
  test.for(URLS_AND_OPTIONS)('is what leads ioredis there: %j, %j', ([url, connection]) => {
    const options: ClientOptions = { ...connection, ...FIXED }
    const { options: theirs } = new Client(...(url === null ? [options] : [url, options]))
    const { host, port, family, path, username, password, tls, noDelay } = theirs
    const target = respTarget(url, options)
    if (typeof path === 'string') expect(target?.socket).toEqual({ path })
    else expect({ family: 0, ...target?.socket }).toEqual({ host, port, family })
    expect(target?.auth).toEqual(username ? [username, password ?? ''] : password ? [password] : null)
    expect(target?.tls !== null).toBe(Boolean(tls))
    expect(target?.tls ?? {}).toEqual(typeof tls === 'object' ? tls : {})
    expect(target?.noDelay).toBe(noDelay)
  })

  test.for([
    { sentinels: [{ host: 'one', port: 26379 }], name: 'primary' },
    { tls: { profile: 'RedisCloudFixed' } },
    { tls: 'RedisCloudFixed' },
    { readOnly: true },
    { commandTimeout: 100 },
    { host: 7 },
    { somethingNew: true },
  ])('is left to ioredis for %j', (connection) => {
    expect(respTarget(null, connection)).toBeNull()
    expect(respTarget('redis://localhost?sentinelUsername=me', {})).toBeNull()
  })
})
