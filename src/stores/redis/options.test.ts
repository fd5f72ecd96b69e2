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

test.each(['redis://host:6379/2', 'rediss://user:secret@host', 'redis-cluster://host?node=other:1'])(
  'the store of %s is this one',
  (source) => {
    expect(storeFrom(source, systemClock, systemRandom).kind).toBe('redis')
  },
)
