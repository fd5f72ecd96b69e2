import { expect, test } from 'vitest'
import { systemClock } from '../../std/clock.ts'
import { systemRandom } from '../../std/random.ts'
import { storeFrom } from '../from-url.ts'
import { readRedisOptions, type RedisStoreOptions } from './options.ts'

const url = 'redis://127.0.0.1:6379'

test('a URL is enough', () => {
  expect(readRedisOptions({ url })).toMatchObject({
    url,
    prefix: 'holdfast',
    commandTimeoutMs: 10_000,
    allowEviction: false,
  })
})

test.each<[string, Partial<RedisStoreOptions>, object]>([
  ['none', { url }, { url, db: 0 }],
  ['a slash', { url: `${url}/` }, { url, db: 0 }],
  ['a path', { url: 'rediss://u:p%40@h:1/15?family=6' }, { url: 'rediss://u:p%40@h:1?family=6', db: 15 }],
  ['a query', { url: `${url}?db=3` }, { url, db: 3 }],
  ['the same twice', { url: `${url}/3`, connection: { db: 3 } }, { url, db: 3 }],
  [
    'options alone',
    { connection: { host: 'h', db: 4 } },
    { url: null, db: 4, connection: { host: 'h', db: 4 } },
  ],
  [
    'a socket',
    { url: 'redis+unix:///run/my%20redis.sock?db=5' },
    { url: null, db: 5, connection: { path: '/run/my redis.sock' } },
  ],
])('the database of %s', (_what, options, expected) => {
  expect(readRedisOptions(options)).toMatchObject(expected)
})

test('the URL of a cluster names its nodes and who we are', () => {
  const {
    cluster,
    connection,
    url: single,
  } = readRedisOptions({
    url: 'rediss-cluster://user:s%40crt@one:7000?node=two&node=[::1]:7002',
  })
  expect(single).toBeNull()
  expect(connection).toEqual({ username: 'user', password: 's@crt', tls: {} })
  expect(cluster).toEqual([
    { host: 'one', port: 7000 },
    { host: 'two', port: 6379 },
    { host: '::1', port: 7002 },
  ])
})

test.each<[string, object]>([
  ['neither a URL nor a connection', {}],
  ['a URL of something else', { url: 'http://127.0.0.1' }],
  ['a URL that is none', { url: 'redis://' }],
  ['a node that is none', { url: 'redis-cluster://one?node=two/3' }],
  ['a database that is none', { url: `${url}/notanumber` }],
  ['a negative database', { url: `${url}/-1` }],
  ['half a database', { url: `${url}/1.5` }],
  ['a path behind the database', { url: `${url}/1/2` }],
  ['a database in the query that is none', { url: `${url}?db=x` }],
  ['a database in the options that is none', { connection: { db: -1 } }],
  ['two databases', { url: `${url}/1`, connection: { db: 2 } }],
  ['the database of a cluster', { url: 'redis-cluster://one/1' }],
  ['a socket in the wrong form', { url: 'redis:///run/redis.sock' }],
  ['a socket with a host', { url: 'redis+unix://run/redis.sock' }],
  ['a socket with other options', { url: 'redis+unix:///run/redis.sock?family=6' }],
  ['a password with a broken escape', { url: 'redis://user:100%@host' }],
  ['a prefix with a hash tag', { url, prefix: 'a{b}' }],
  ['an empty prefix', { url, prefix: '' }],
  ['no time for a command', { url, commandTimeoutMs: 0 }],
  ['an endless command', { url, commandTimeoutMs: Infinity }],
  ['a permission that is no boolean', { url, allowEviction: 'yes' }],
  ['a prefix of the driver', { connection: { keyPrefix: 'x' } }],
  ['a misspelt option', { url, prefixx: 'a' }],
])('refused: %s', (_what, options) => {
  expect(() => readRedisOptions(options as RedisStoreOptions)).toThrow(
    expect.objectContaining({ code: 'HF_BAD_OPTION', hint: expect.stringMatching(/./) }),
  )
})

test('no password is ever shown', () => {
  expect(() => readRedisOptions({ url: 'redsi://user:secret@host' })).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining('secret') }),
  )
})

test.each([
  'redis://host:6379/2',
  'redis+unix:///run/redis.sock',
  'rediss://user:secret@host',
  'redis-cluster://host?node=other:1',
])('the store of %s is this one', (source) => {
  expect(storeFrom(source, systemClock, systemRandom).kind).toBe('redis')
})
