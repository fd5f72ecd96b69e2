/** Unique keys: at most one job holds a key at a time, for as long as its rule says. Each job name has its own keys. */
import { HoldfastError } from '../errors.ts'
import type { Duration } from '../std/duration.ts'
import { readDuration } from './duration.ts'
import { show } from './show.ts'

export type OnConflict = 'ignore' | 'replace' | 'reschedule'

export interface Unique {
  readonly key: string
  /** Held until the job is first claimed ('ready'), or until it is final ('unfinished'). @default 'unfinished' */
  readonly while?: 'ready' | 'unfinished'
  /** Held for this long from the enqueue, whatever happens to the job; replaces `while`. */
  readonly for?: Duration
  /**
   * What an enqueue does if the key is held: leave the holder alone, replace its input and options, or move its due
   * time. Only a waiting holder is changed. @default 'ignore'
   */
  readonly onConflict?: OnConflict
}

/** As passed to stores. */
export interface UniqueClaim {
  readonly key: string
  readonly hold: { readonly while: 'ready' | 'unfinished' } | { readonly forMs: number }
  readonly onConflict: OnConflict
}

const MAX_KEY_CHARS = 512
const FIELDS: ReadonlySet<string> = new Set(['key', 'while', 'for', 'onConflict'])

export function readUnique(jobName: string, unique: Unique): UniqueClaim {
  if (typeof unique !== 'object' || unique === null) throw bad('unique must be an object with a key.')
  for (const field of Object.keys(unique)) {
    if (!FIELDS.has(field)) throw bad(`unique.${field} is not an option.`)
  }
  const { key, onConflict = 'ignore' } = unique
  if (typeof key !== 'string' || key === '' || key.length > MAX_KEY_CHARS) {
    throw bad(`unique.key must be a text of 1 to ${MAX_KEY_CHARS} characters.`)
  }
  if (key.includes('\0') || !key.isWellFormed()) throw bad('unique.key holds a NUL byte or half a character.')
  if (!['ignore', 'replace', 'reschedule'].includes(onConflict)) {
    throw bad(`unique.onConflict cannot be ${show(onConflict)}.`)
  }
  if (unique.for !== undefined && unique.while !== undefined) throw bad('unique has both `for` and `while`.')
  // Job names contain no white space, so the scoped key is unambiguous.
  return { key: `${jobName} ${key}`, hold: readHold(unique), onConflict }
}

function readHold(unique: Unique): UniqueClaim['hold'] {
  if (unique.for !== undefined) return { forMs: readDuration(unique.for, 'unique.for') }
  const { while: rule = 'unfinished' } = unique
  if (rule !== 'ready' && rule !== 'unfinished') throw bad(`unique.while cannot be ${show(rule)}.`)
  return { while: rule }
}

function bad(message: string): HoldfastError {
  return new HoldfastError('HF_BAD_OPTION', message, {
    hint: "Use { key, while: 'ready' | 'unfinished' } or { key, for: '10m' }, with onConflict ignore, replace or reschedule.",
  })
}
