/** Makes the store that the options name. */
import { fileURLToPath } from 'node:url'
import { HoldfastError } from '../errors.ts'
import type { Clock } from '../std/clock.ts'
import type { Random } from '../std/random.ts'
import { checkStore } from './check-store.ts'
import { memoryStore } from './memory/index.ts'
import { postgresStore } from './postgres/index.ts'
import { redisStore } from './redis/index.ts'
import { sqliteStore } from './sqlite/index.ts'
import type { Store } from './store.ts'

export function storeFrom(source: string | Store, clock: Clock, random: Random): Store {
  if (typeof source === 'string') {
    if (source === 'memory:') return memoryStore({ clock, random })
    if (/^postgres(ql)?:\/\//.test(source)) return postgresStore({ url: source })
    if (/^(rediss?(-cluster)?|redis\+unix):\/\//.test(source)) return redisStore({ url: source })
    if (source.startsWith('file:')) return sqliteStore({ directory: directoryOf(source) })
    throw new HoldfastError('HF_BAD_STORE', `There is no store for '${withoutSecrets(source)}'.`)
  }
  checkStore(source)
  return source
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
