/** A store from what the options name. */
import { HoldfastError } from '../errors.ts'
import type { Clock } from '../std/clock.ts'
import type { Random } from '../std/random.ts'
import { memoryStore } from './memory/index.ts'
import type { Store } from './store.ts'

export function storeFrom(source: string | Store, clock: Clock, random: Random): Store {
  if (typeof source === 'string') {
    if (source === 'memory:') return memoryStore({ clock, random })
    throw new HoldfastError('HF_BAD_STORE', `There is no store for '${withoutSecrets(source)}'.`)
  }
  const missing = METHODS.filter((method) => typeof source[method] !== 'function')
  if (missing.length === 0) return source
  throw new HoldfastError('HF_BAD_STORE', `The store object has no ${missing.join(', ')}.`)
}

const METHODS = [
  'open',
  'close',
  'enqueue',
  'register',
  'retire',
  'cycle',
  'heartbeat',
  'report',
  'subscribe',
] as const

/** Whatever stands between the scheme and the host may be a password. */
function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//…@')
}
