/** Creates the store that the options name. */
import { fileURLToPath } from 'node:url'
import { HoldfastError } from '../errors.ts'
import type { Clock } from '../std/clock.ts'
import type { Random } from '../std/random.ts'
import { checkStore } from './check-store.ts'
import { LazyStore } from './lazy-store.ts'
import { memoryStore } from './memory/index.ts'
import { readRedisOptions } from './redis/options.ts'
import { readDirectoryName } from './sqlite/files/directory-name.ts'
import type { Store } from './store.ts'

export function storeFrom(source: string | Store, clock: Clock, random: Random): Store {
  if (typeof source === 'string') {
    if (source === 'memory:') return memoryStore({ clock, random })
    if (/^postgres(ql)?:\/\//.test(source)) return lazyPostgres(source)
    if (/^(rediss?(-cluster)?|redis\+unix):\/\//.test(source)) return lazyRedis(source)
    if (source.startsWith('file:')) return lazySqlite(directoryOf(source))
    throw new HoldfastError('HF_BAD_STORE', `There is no store for '${withoutSecrets(source)}'.`)
  }
  checkStore(source)
  return source
}

function lazyPostgres(url: string): Store {
  return new LazyStore({
    kind: 'postgres',
    transactional: true,
    load: async () => (await import('./postgres/index.ts')).postgresStore({ url }),
  })
}

function lazyRedis(url: string): Store {
  // A URL that cannot be read is refused at once.
  readRedisOptions({ url })
  return new LazyStore({
    kind: 'redis',
    transactional: false,
    load: async () => (await import('./redis/index.ts')).redisStore({ url }),
  })
}

function lazySqlite(directory: string): Store {
  readDirectoryName(directory, 'holdfast().store')
  return new LazyStore({
    kind: 'embedded',
    transactional: false,
    load: async () => (await import('./sqlite/index.ts')).sqliteStore({ directory }),
  })
}

/** `file:.holdfast` and `file:./data` are relative to where the process was started; `file:///srv/jobs` is not. */
export function directoryOf(url: string): string {
  if (url.startsWith('file://')) return fileURLToPath(url)
  const directory = decodeURIComponent(url.slice('file:'.length))
  if (directory !== '') return directory
  throw new HoldfastError('HF_BAD_STORE', "The store 'file:' names no directory.", {
    hint: "Name one: 'file:.holdfast'.",
  })
}

/** The part between the scheme and the host may contain a password. */
function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//…@')
}
